"""The one source of chance of the log generator: a seed for long runs, Hypothesis for runs that shrink."""

import random

from hypothesis import strategies as st


class Dice:
    """Everything is drawn through `below`, and 0 is always the dull outcome, so that Hypothesis shrinks to dullness."""

    def below(self, limit):
        raise NotImplementedError

    def pick(self, options):
        return options[self.below(len(options))]

    def one_in(self, times):
        return self.below(times) == times - 1

    def weighted(self, options):
        """Of `{option: weight}`, in its order."""
        rest = self.below(sum(options.values()))
        for option, weight in options.items():
            if rest < weight:
                return option
            rest -= weight
        raise AssertionError(options)


class SeededDice(Dice):
    def __init__(self, seed):
        self.random = random.Random(seed)

    def below(self, limit):
        return self.random.randrange(limit)


class DrawnDice(Dice):
    def __init__(self, draw):
        self.draw = draw

    def below(self, limit):
        return 0 if limit == 1 else self.draw(st.integers(0, limit - 1))
