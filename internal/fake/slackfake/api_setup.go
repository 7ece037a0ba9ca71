package slackfake

import (
	"encoding/json"
	"net/url"
	"slices"
)

// appsManifestCreate wants a configuration token.
const appsManifestCreate = "apps.manifest.create"

// createApp creates the app of the workspace from a manifest that the SDK's types allow.
func (s *Server) createApp(f url.Values) (answer, error) {
	var manifest any
	if json.Unmarshal([]byte(f.Get("manifest")), &manifest) != nil {
		return refuse("invalid_manifest")
	}
	if err := s.breach(Contract().Check("manifest", manifest, true)); err != nil {
		return nil, err
	}
	return answer{
		"app_id": s.cfg.AppID,
		"credentials": answer{
			"client_id": "1.2", "client_secret": "client-secret", "verification_token": "unused",
			"signing_secret": s.cfg.SigningSecret,
		},
		"oauth_authorize_url": s.url + "/oauth/v2/authorize?client_id=1.2",
	}, nil
}

// conversationsList lists the public channels of Config that are not archived. It has one page.
func (s *Server) conversationsList(f url.Values) (answer, error) {
	if f.Get("types") != "public_channel" || !yes(f.Get("exclude_archived")) {
		return refuse("invalid_types") // nobody needs others
	}
	list := []answer{}
	for _, c := range s.cfg.Channels {
		if ch, ok := s.channel(c.ID); ok && !ch.Private && !ch.Archived {
			list = append(list, answer{
				"id": ch.ID, "name": ch.Name, "is_channel": true, "is_member": !ch.Outside, "is_private": false,
				"is_archived": false,
			})
		}
	}
	return answer{"channels": list, "response_metadata": answer{"next_cursor": ""}}, nil
}

// conversationsJoin lets the bot into a public channel.
func (s *Server) conversationsJoin(f url.Values) (answer, error) {
	ch, ok := s.channel(f.Get("channel"))
	switch {
	case !ok || ch.Private:
		return refuse("channel_not_found")
	case ch.Archived:
		return refuse("is_archived")
	}
	if i := slices.IndexFunc(s.cfg.Channels, func(c Channel) bool { return c.ID == ch.ID }); i >= 0 {
		s.cfg.Channels[i].Outside = false
	}
	return answer{"channel": answer{"id": ch.ID, "name": ch.Name, "is_channel": true, "is_member": true}}, nil
}
