package slackfake

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Channel gives attributes to a channel of the workspace.
type Channel struct {
	ID       string // C… public, G… private, D… a direct message with the bot
	Name     string // without the #; default: the id in lower case
	Private  bool   // also if the ID does not say so
	Archived bool   // can be read, not written
	External bool   // shared with another organisation
	Outside  bool   // the bot is not in it: not_in_channel, or channel_not_found if it is private
}

// User gives attributes to a person or a bot of the workspace.
type User struct {
	ID       string // U… or W…
	Name     string // default: the id in lower case
	RealName string // default: Name
	TZ       string // default: "Etc/UTC"
	TeamID   string // default: the workspace; another one makes a stranger of a shared channel
	Bot      bool
	Deleted  bool
	Guest    bool   // a multi-channel guest: is_restricted
	OneGuest bool   // a guest of one channel: is_ultra_restricted, and is_restricted as well
	Org      string // the enterprise that the user's workspace belongs to
}

var (
	channelID = regexp.MustCompile(`^[CGD][A-Z0-9]+$`)
	userID    = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
)

// channel is false for an id that is not one.
func (s *Server) channel(id string) (Channel, bool) {
	ch := Channel{ID: id}
	if i := slices.IndexFunc(s.cfg.Channels, func(c Channel) bool { return c.ID == id }); i >= 0 {
		ch = s.cfg.Channels[i]
	}
	ch.Name = cmp.Or(ch.Name, strings.ToLower(id))
	ch.Private = ch.Private || !strings.HasPrefix(id, "C")
	return ch, channelID.MatchString(id)
}

// Change replaces the attributes of a channel, as when the bot is removed from it or invited again.
func (s *Server) Change(ch Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Channels = append(slices.DeleteFunc(slices.Clone(s.cfg.Channels),
		func(c Channel) bool { return c.ID == ch.ID }), ch)
	s.notify()
}

// open is the channel if the bot may see into it, else Slack's refusal: it does not tell of private channels the bot is
// not in.
func (s *Server) open(id string) (Channel, error) {
	switch ch, ok := s.channel(id); {
	case !ok, ch.Outside && ch.Private:
		return Channel{}, apiError{code: "channel_not_found"}
	case ch.Outside:
		return Channel{}, apiError{code: "not_in_channel"}
	default:
		return ch, nil
	}
}

// writable is the channel if the bot may post there.
func (s *Server) writable(id string) (Channel, error) {
	ch, err := s.open(id)
	if err == nil && ch.Archived {
		err = apiError{code: "is_archived"}
	}
	return ch, err
}

// kind is the channel_type of a message event.
func (c Channel) kind() string {
	switch {
	case strings.HasPrefix(c.ID, "D"):
		return "im"
	case c.Private:
		return "group"
	default:
		return "channel"
	}
}

// user is false for an id that is not one.
func (s *Server) user(id string) (User, bool) {
	u := User{ID: id}
	if i := slices.IndexFunc(s.cfg.Users, func(u User) bool { return u.ID == id }); i >= 0 {
		u = s.cfg.Users[i]
	} else if id == s.cfg.BotUserID {
		u = User{ID: id, Name: "errand", Bot: true}
	}
	u.Name = cmp.Or(u.Name, strings.ToLower(id))
	u.RealName = cmp.Or(u.RealName, u.Name)
	u.TZ = cmp.Or(u.TZ, "Etc/UTC")
	u.TeamID = cmp.Or(u.TeamID, s.cfg.TeamID)
	return u, userID.MatchString(id)
}

func (s *Server) authTest(url.Values) (answer, error) {
	bot, _ := s.user(s.cfg.BotUserID)
	return answer{
		"url": s.url + "/", "team": "errand", "team_id": s.cfg.TeamID,
		"user": bot.Name, "user_id": bot.ID, "bot_id": s.cfg.BotID, "enterprise_id": s.cfg.Org,
		"is_enterprise_install": false,
	}, nil
}

func (s *Server) botsInfo(f url.Values) (answer, error) {
	if id := f.Get("bot"); id != "" && id != s.cfg.BotID {
		return refuse("bot_not_found")
	}
	bot, _ := s.user(s.cfg.BotUserID)
	return answer{"bot": answer{
		"id": s.cfg.BotID, "name": bot.Name, "user_id": bot.ID, "app_id": s.cfg.AppID, "deleted": bot.Deleted,
	}}, nil
}

func (s *Server) usersInfo(f url.Values) (answer, error) {
	u, ok := s.user(f.Get("user"))
	if !ok {
		return refuse("user_not_found")
	}
	return answer{"user": answer{
		"enterprise_user": answer{"enterprise_id": u.Org},
		"id":              u.ID, "team_id": u.TeamID, "name": u.Name, "real_name": u.RealName, "tz": u.TZ,
		"deleted": u.Deleted, "is_bot": u.Bot, "is_restricted": u.Guest || u.OneGuest,
		"is_ultra_restricted": u.OneGuest, "is_stranger": u.TeamID != s.cfg.TeamID &&
			(s.cfg.Org == "" || u.Org != s.cfg.Org),
		"profile": answer{"real_name": u.RealName, "display_name": u.Name},
	}}, nil
}

func (s *Server) conversationsInfo(f url.Values) (answer, error) {
	ch, ok := s.channel(f.Get("channel"))
	if !ok || ch.Outside && ch.Private {
		return refuse("channel_not_found")
	}
	kind := ch.kind()
	return answer{"channel": answer{
		"id": ch.ID, "name": ch.Name, "name_normalized": ch.Name,
		"is_channel": kind == "channel", "is_group": kind == "group", "is_im": kind == "im",
		"is_private": ch.Private, "is_archived": ch.Archived, "is_ext_shared": ch.External, "is_shared": ch.External,
		"is_member": !ch.Outside, "context_team_id": s.cfg.TeamID,
	}}, nil
}
