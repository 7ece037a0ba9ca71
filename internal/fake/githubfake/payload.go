package githubfake

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Payload is what the webhooks about a pull request have in common, for
// events the fake does not send by itself: action, number, pull_request,
// repository, sender and, with an App, installation.
func (s *Server) Payload(action, repo string, number int, sender string) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return s.pullPayload(action, p, sender), nil
}

func (s *Server) pullPayload(action string, p *pull, sender string) object {
	detail := s.pullDetail(p)
	// Not computed yet when the webhook goes out.
	detail["mergeable"], detail["mergeable_state"], detail["rebaseable"] = nil, "unknown", nil
	body := s.envelope(p.repo, sender)
	body["action"], body["number"], body["pull_request"] = action, p.number, detail
	return body
}

// pullEvent is a pull_request webhook. more is added to the payload.
func (s *Server) pullEvent(action string, p *pull, sender string, more object) event {
	body := s.pullPayload(action, p, sender)
	maps.Copy(body, more)
	return s.encode("pull_request", body)
}

// envelope is what every payload carries.
func (s *Server) envelope(r *Repo, sender string) object {
	body := object{"repository": s.repository(r), "sender": s.user(sender)}
	if s.owns(r.owner) {
		org := s.user(r.owner)
		body["organization"] = object{"login": org["login"], "id": org["id"], "node_id": org["node_id"]}
	}
	if s.cfg.AppID != 0 {
		body["installation"] = object{
			"id": s.cfg.InstallationID, "node_id": node("IntegrationInstallation", s.cfg.InstallationID),
		}
	}
	return body
}

// pushEvent is a push webhook; before or after is "" for a branch made or
// deleted.
func (s *Server) pushEvent(r *Repo, branch, before, after, user string) event {
	body := s.envelope(r, user)
	body["ref"] = "refs/heads/" + branch
	body["before"], body["after"] = orNoCommit(before), orNoCommit(after)
	body["created"], body["deleted"] = before == "", after == ""
	body["pusher"] = object{"name": user, "email": user + "@example.com"}
	body["commits"], body["head_commit"] = []object{}, nil
	if after != "" {
		commit := object{"id": after, "timestamp": stamp(r.pushed)}
		body["commits"], body["head_commit"] = []object{commit}, commit
	}
	return s.encode("push", body)
}

func orNoCommit(sha string) string {
	if sha == "" {
		return noCommit
	}
	return sha
}

// encode makes a webhook of a body, to which it adds what GitHub always sends, and compares it with GitHub's
// description. The caller holds mu.
func (s *Server) encode(name string, body object) event {
	schema := name + " event"
	if action, ok := body["action"].(string); ok {
		schema = name + " " + action + " event"
	}
	payload, err := json.Marshal(body)
	var decoded any
	if err == nil {
		err = json.Unmarshal(payload, &decoded)
	}
	if err == nil {
		decoded = Contract().Complete(schema, decoded, s.url)
		if wrong := Contract().Check(schema, decoded, true); wrong != nil {
			s.breaches.Add(wrong.Error())
		}
		payload, err = json.Marshal(decoded)
	}
	if err != nil {
		// The bodies are maps of strings, numbers and times made here.
		panic(fmt.Sprintf("githubfake: encode %s: %v", name, err))
	}
	return event{name, payload}
}
