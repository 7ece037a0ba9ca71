package policy

import (
	"fmt"
	"slices"
)

// Wish is what somebody wants of a run. They leave to others what is empty.
type Wish struct {
	Of     string // whose it is, for people
	Model  string
	Effort string
	// Directory is the one of the main repository in which the agent starts. A channel and the fleet have none, and a
	// request's is not settled here, because a conversation stays where it began.
	Directory string
	// Instructions are a text for the agent. Only an operator gives one.
	Instructions string
}

// Wishes are those that matter to a run.
type Wishes struct {
	Request      Wish
	Channel      Wish   // the operator's for the channel of the request
	Repositories []Wish // the operator's for each repository of the task, the main one first
	Own          Wish   // of the main repository itself
	Fleet        Wish   // the operator's for all runs

	Models, Efforts []string // what the operator lets others than themselves choose; empty: anything
}

// Setting is a setting of a run, with whose wish counted.
type Setting struct {
	Name  string `json:"name"` // model, effort or directory
	Value string `json:"value"`
	Of    string `json:"of"`
}

// Text is a text of the operator for the agent, with what it is for.
type Text struct{ For, Text string }

// Settled is what counts for a run.
type Settled struct {
	Settings []Setting // a setting that nobody has a wish for is missing: the CLI decides
	// Before are the texts that the agent gets before those of the repository's own files, and After those that follow.
	// Where texts contradict each other, the later ones count.
	Before, After []Text
	Notes         []string // sentences about wishes that the operator does not allow
}

// Settle decides whose wishes count. The nearest to the request counts for each setting: the request, the channel, the
// main repository as the operator sets it up, what it says itself, and the fleet. Texts for the agent all count, in the
// opposite order.
func Settle(w Wishes) Settled {
	var s Settled
	main := Wish{}
	if len(w.Repositories) > 0 {
		main = w.Repositories[0]
	}
	for _, one := range []struct {
		name    string
		of      func(Wish) string
		allowed []string
	}{
		{"model", func(w Wish) string { return w.Model }, w.Models},
		{"effort", func(w Wish) string { return w.Effort }, w.Efforts},
		{"directory", func(w Wish) string { return w.Directory }, nil},
	} {
		offered := func(w Wish) string {
			value := one.of(w)
			if value != "" && len(one.allowed) > 0 && !slices.Contains(one.allowed, value) {
				s.Notes = append(s.Notes, fmt.Sprintf("The %s %s of %s is not among those that the operator offers. "+
					"It is left out.", one.name, value, w.Of))
				return ""
			}
			return value
		}
		for _, by := range []Setting{
			{one.name, offered(w.Request), w.Request.Of},
			{one.name, one.of(w.Channel), w.Channel.Of},
			{one.name, one.of(main), main.Of},
			{one.name, offered(w.Own), w.Own.Of},
			{one.name, one.of(w.Fleet), w.Fleet.Of},
		} {
			if by.Value != "" {
				s.Settings = append(s.Settings, by)
				break
			}
		}
	}
	s.Before = texts(w.Fleet)
	s.After = append(texts(w.Repositories...), texts(w.Channel)...)
	return s
}

// texts returns the texts of wishes that have one.
func texts(wishes ...Wish) (all []Text) {
	for _, w := range wishes {
		if w.Instructions != "" {
			all = append(all, Text{w.Of, w.Instructions})
		}
	}
	return all
}

// Value returns the value of a setting; empty if the CLI decides.
func (s Settled) Value(name string) string { return s.Setting(name).Value }

// Setting returns a setting; zero if nobody has a wish for it.
func (s Settled) Setting(name string) Setting {
	for _, one := range s.Settings {
		if one.Name == name {
			return one
		}
	}
	return Setting{}
}

// Put replaces a setting. Without a value the setting is removed.
func (s *Settled) Put(one Setting) {
	s.Settings = slices.DeleteFunc(slices.Clone(s.Settings), func(was Setting) bool { return was.Name == one.Name })
	if one.Value != "" {
		s.Settings = append(s.Settings, one)
	}
}
