"""With a key the store holds no signing secret of a webhook, and without the key nobody derives it."""

import pytest

from patra.bus.store.groups import Webhook
from patra.bus.transports.webhook_secrets import NO_KEYS, WebhookKeys, is_derived
from patra.kernel.errors import ConfigInvalid

OLD, NEW = "old-key-of-more-than-32-characters", "new-key-of-more-than-32-characters"


def hook(stored: str, old: str = "") -> Webhook:
    return Webhook(
        name="n",
        url="https://x.test/",
        secret=stored,
        created_by="me",
        created_at=1,
        old_secret=old,
        old_secret_until=9,
    )


def test_a_row_holds_a_nonce_from_which_only_the_key_makes_the_secret():
    keys = WebhookKeys([OLD])
    stored, secret = keys.new()
    assert secret.startswith("whsec_")
    assert is_derived(stored)
    assert secret.removeprefix("whsec_") not in stored
    assert OLD not in stored
    assert keys.reveal(hook(stored)).secret == secret
    assert keys.new()[1] != secret
    other = WebhookKeys([NEW])
    assert other.reveal(hook(stored)) is None
    assert NO_KEYS.reveal(hook(stored)) is None


def test_a_new_key_stands_in_front_and_the_old_one_is_still_read():
    stored, secret = WebhookKeys([OLD]).new()
    both = WebhookKeys([NEW, OLD])
    fresh, newer = both.new()
    assert both.reveal(hook(fresh, stored)) == hook(newer, secret)
    only_new = WebhookKeys([NEW]).reveal(hook(fresh, stored))
    assert (only_new.secret, only_new.old_secret, only_new.old_secret_until) == (newer, "", 0)


def test_without_keys_and_for_rows_of_before_the_secret_is_the_row():
    stored, secret = NO_KEYS.new()
    assert stored == secret
    assert WebhookKeys([NEW]).reveal(hook(stored)) == hook(secret)


def test_a_short_key_is_refused():
    with pytest.raises(ConfigInvalid) as caught:
        WebhookKeys(["too-short"])
    assert (caught.value.code, caught.value.place) == ("config_webhook_key_short", "bus.webhook_keys[0]")
