package slack

import (
	"fmt"
	"slices"
	"strings"
)

// refusal is what a failed call of Slack is about. Only what needs special treatment has a list of Slack's codes; any
// other code is about the message, which is then posted in a plainer form.
type refusal int

const (
	noRefusal    refusal = iota // no refusal: the call succeeded, or its result is unknown
	ofMoment                    // a rate limit, or trouble of Slack
	ofCredential                // a token or a scope
	ofPlace                     // the bot may not post there now
	ofThread                    // the thread does not exist any more
	ofForm                      // the message
)

// The codes of Slack that are special.
var (
	passingCodes = []string{
		"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited", "rate_limited",
		"accesslimited", "team_added_to_org",
	}
	credentialCodes = []string{
		"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", missingScope,
		"no_permission", "not_allowed_token_type", "access_denied", "ekm_access_denied", "org_login_required",
		"two_factor_setup_required", "team_access_not_granted",
	}
	// channel_not_found is also Slack's answer about a private channel that the bot has been removed from.
	placeCodes = []string{
		"channel_not_found", "not_in_channel", "is_archived", "cannot_reply_to_message", "user_is_restricted",
		"messages_tab_disabled", "cannot_dm_bot",
	}
)

const (
	// threadGone is Slack's code for a thread whose first message was deleted.
	threadGone   = "thread_not_found"
	missingScope = "missing_scope"
)

// refusalOf says what the error of a call is about.
func refusalOf(err error) refusal {
	if _, limited := retryAfter(err); limited {
		return ofMoment
	}
	switch c := code(err); {
	case c == "":
		return noRefusal
	case c == threadGone:
		return ofThread
	case slices.Contains(passingCodes, c):
		return ofMoment
	case slices.Contains(credentialCodes, c):
		return ofCredential
	case slices.Contains(placeCodes, c), strings.HasPrefix(c, "restricted_action"):
		return ofPlace
	}
	return ofForm
}

// gone reports whether nothing can be posted to the place now, perhaps never again.
func gone(err error) bool { return refusalOf(err) == ofPlace || refusalOf(err) == ofThread }

// unreadable reports whether the app may not read the thread, though perhaps post there.
func unreadable(err error) bool { return code(err) == missingScope }

// malformed reports whether a message was refused for its form.
func malformed(err error) bool { return refusalOf(err) == ofForm }

// complaint says why a call failed, as a clause for people.
func complaint(err error) string {
	switch c := code(err); {
	case refusalOf(err) == ofThread:
		return "its thread does not exist any more"
	case c != "":
		return fmt.Sprintf("Slack says %s", c)
	case refusalOf(err) == ofMoment:
		return rateLimit
	}
	return "Slack does not answer as expected"
}
