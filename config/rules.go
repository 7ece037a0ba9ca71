package config

import (
	"fmt"
	"slices"
	"strconv"
)

// Rule decides calls of the agents' tools. Whether there is such a tool, package agent knows.
type Rule struct {
	Tool   string `yaml:"tool"`   // name of a tool, or a pattern of names
	Input  string `yaml:"input"`  // pattern of what the call is about; empty = anything
	Action string `yaml:"action"` // ActionAllow, ActionDeny or ActionAsk
	Reason string `yaml:"reason"` // told to the agent, or to whoever is asked
}

// The values of Rule.Action.
const (
	ActionAllow = "allow"
	ActionDeny  = "deny"
	ActionAsk   = "ask"
)

func (v routingCheck) rules(r Routing) {
	for i, rule := range r.Rules {
		path := []string{"rules", strconv.Itoa(i + 1)}
		if rule.Tool == "" {
			v.add("has no tool", "add `tool: Bash`, or `tool: \"*\"` for all", path...)
		}
		if !slices.Contains([]string{ActionAllow, ActionDeny, ActionAsk}, rule.Action) {
			v.add(fmt.Sprintf("is %q", rule.Action), "write allow, deny or ask", append(path, "action")...)
		}
	}
}
