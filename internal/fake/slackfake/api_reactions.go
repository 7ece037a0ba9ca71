package slackfake

import (
	"net/url"
	"regexp"
	"slices"
)

// emoji is a name without its colons, perhaps with a skin tone.
var emoji = regexp.MustCompile(`^[a-z0-9_+'-]+(::skin-tone-[2-6])?$`)

// Reactions returns the names of the reactions to a message by all users, in the order they were first added.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	if r := s.find(channel, ts); r != nil {
		for _, re := range r.reactions {
			names = append(names, re.Name)
		}
	}
	return names
}

func (s *Server) reactionsAdd(f url.Values) (answer, error) {
	r, name, err := s.reacted(f)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.reactions, func(re reaction) bool { return re.Name == name })
	if i < 0 {
		r.reactions = append(r.reactions, reaction{Name: name, Users: []string{s.cfg.BotUserID}, Count: 1})
		return answer{}, nil
	}
	re := &r.reactions[i]
	if slices.Contains(re.Users, s.cfg.BotUserID) {
		return refuse("already_reacted")
	}
	re.Users, re.Count = append(slices.Clone(re.Users), s.cfg.BotUserID), re.Count+1
	return answer{}, nil
}

func (s *Server) reactionsRemove(f url.Values) (answer, error) {
	r, name, err := s.reacted(f)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.reactions, func(re reaction) bool {
		return re.Name == name && slices.Contains(re.Users, s.cfg.BotUserID)
	})
	if i < 0 {
		return refuse("no_reaction")
	}
	re := &r.reactions[i]
	re.Users, re.Count = slices.DeleteFunc(slices.Clone(re.Users),
		func(u string) bool { return u == s.cfg.BotUserID }), re.Count-1
	if re.Count == 0 {
		r.reactions = slices.Delete(slices.Clone(r.reactions), i, i+1)
	}
	return answer{}, nil
}

// reacted is the message a reaction is for, and the reaction.
func (s *Server) reacted(f url.Values) (*record, string, error) {
	if !f.Has("channel") || !f.Has("timestamp") {
		return nil, "", apiError{code: "no_item_specified"}
	}
	name := f.Get("name")
	if !emoji.MatchString(name) {
		return nil, "", apiError{code: "invalid_name"}
	}
	r, err := s.message(f, "timestamp")
	return r, name, err
}
