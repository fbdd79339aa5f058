"""What each client sees of whatever is known: its profile's part, and logins where it can."""

from functools import partial

from aggregator.fleet.now import Now
from aggregator.fleet.profile_views import ProfileViews
from aggregator.names import ServerName
from aggregator.upstream.login_invitations import LoginInvitations, Outlook


class Outlooks:
    """The outlook of every kind of client, each of them worked out once at each change."""

    def __init__(self, profile_views: ProfileViews, *, invites: bool) -> None:
        self._profile_views = profile_views
        self._invites = invites
        """Whether anybody can log in here at all."""
        self._known: dict[tuple[str | None, bool], Outlook] = {}

    def of(self, profile: str | None, *, can_log_in: bool) -> Outlook:
        """Return what clients of a profile see, who can or cannot show a person a page."""
        key = profile, can_log_in and self._invites
        if key not in self._known:
            self._known[key] = self._made(*key)
        return self._known[key]

    def shows(self, profile: str | None, server: ServerName, now: Now) -> bool:
        """Whether a server exists for clients of a profile."""
        return profile is None or server in self._profile_views.seen(profile, now).config.servers

    def reads(self, profile: str | None, server: ServerName, now: Now) -> bool:
        """Whether resources of a server exist for clients of a profile."""
        if profile is None:
            return True
        narrowed = self._profile_views.seen(profile, now)
        return server in narrowed.config.servers and server not in narrowed.routes.closed

    def _made(self, profile: str | None, can_log_in: bool) -> Outlook:
        narrowed = partial(self._profile_views.seen, profile)
        if not can_log_in:
            return narrowed
        login_invitations = LoginInvitations()

        def outlook(now: Now) -> Now:
            # To log in changes something.
            is_reading = profile is not None and now.config.settings.view(profile).read_only
            return narrowed(now) if is_reading else login_invitations(narrowed(now))

        return outlook
