package slack

import "context"

// Team returns the ID of the workspace that the bot's token is for.
func (s *Source) Team(ctx context.Context) (string, error) {
	me, err := s.client.me.get(ctx)
	return me.team, err
}
