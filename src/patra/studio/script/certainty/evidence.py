"""The table of evidence: how often a claim on a shot is right that rests on it, and the words for it (C§2.3).

The shares were set on chapters that the code had not seen, judged still by still (decision 78): they are estimates to
rank shots by, no measured frequencies.
"""

# who is seen
EVIDENCE: dict[str, tuple[float, str]] = {
    "named_here": (0.98, "the name stands in this sentence"),
    "role_here": (0.93, "a role stands in this sentence"),
    "kin_here": (0.85, "only a relative of someone"),
    "kin_away": (0.5, "a relative something comes from or is of"),
    "asked_about": (0.45, "a question, a wish or an order, not what happens"),
    "turn": (0.75, "the speaker follows from whose turn it is"),
    "addressed": (0.7, "only spoken to"),
    "pronoun_of_one": (0.92, "a pronoun that one person fits"),
    "pronoun_goes_on": (0.88, "a pronoun for who was named just before"),
    "pronoun_of_several": (0.65, "a pronoun that several people fit"),
    "carried": (0.6, "still there from the shot before"),
    "group": (0.75, "one of a group without names"),
    # whether it is a name
    "title": (0.98, "a title stands before the name"),
    "listed_name": (0.97, "a known given name"),
    "surname": (0.94, "begins with a Chinese surname"),
    "repeated_name": (0.93, "the name comes again"),
    "guessed_name": (0.7, "taken for a name by its place in the sentence"),
    "word_as_name": (0.3, "the name is also a plain word"),
    # sex
    "word_of_one_sex": (0.99, "a word of one sex"),
    "list_of_names": (0.97, "a given name of one sex"),
    "sex_by_text": (0.93, "pronouns or letters of the name agree"),
    "sex_by_letters": (0.75, "letters of the name, or pronouns of a text with both"),
    "sex_guessed": (0.5, "nothing says whether woman or man"),
    # age
    "word_of_an_age": (0.96, "a word of an age"),
    "aged_by_text": (0.9, "words of the chapter say young or old"),
    "age_stated": (0.95, "the age is stated"),
    "grown_role": (0.96, "a role that only grown people have"),
    "grown_by_default": (0.9, "nobody says that it is a child"),
    "child_with_title": (0.3, "a child who is called Mr or Mrs"),
    "children_about": (0.85, "the chapter is about children, this one may be one"),
    "life_between": (0.75, "at some time of a life"),
    "offspring": (0.6, "a son or daughter may be grown"),
    # who may be missing
    "person_not_found": (0.45, "a word for a person is nobody in the picture"),
    "name_not_found": (0.5, "what may be a name is nobody in the picture"),
    "pronoun_unresolved": (0.5, "a pronoun is nobody in the picture"),
    "narrator_acts": (0.5, "who tells it acts in it"),
    "crowd_shown": (0.5, "many people by a word for many"),
    "crowd_carried": (0.4, "many people from the shot before"),
    # where
    "place_here": (0.94, "the place is stated in this shot"),
    "place_of_living": (0.7, "a place where someone lives, who need not be there"),
    "place_passed": (0.6, "a place that is only passed, seen or gone to"),
    "place_as_people": (0.4, "a place that stands for its people"),
    "place_in_life": (0.75, "a place in a life, which may be only where someone had been"),
    "place_paragraph": (0.93, "the place was stated in this paragraph"),
    "place_before": (0.85, "the place was stated in the paragraph before"),
    "place_far": (0.72, "the place was stated long before"),
    "place_unsaid": (0.94, "no place is said and none is shown"),
    "place_not_found": (0.75, "a place is said that is not understood"),
    "other_place": (0.6, "another place is named, too"),
    "place_beside": (0.85, "in or at something at that place, or elsewhere"),
    "place_implied": (0.5, "the place only follows from a thing"),
    "place_only_told": (0.35, "the place is only in what is reported, planned or asked"),
    "place_of_many": (0.9, "a place of which nobody is said to be there"),
    # things
    "thing_exact": (0.99, "a word of one sense whose drawing is that thing"),
    "thing_painted": (0.93, "one of the words that our own drawings know"),
    "thing_by_sense": (0.6, "a word of two senses, or a drawing of something alike"),
    "thing_denied": (0.3, "not done or not there"),
}
