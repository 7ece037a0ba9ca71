package github

import "context"

// background is how many calls that nobody waits for may be under way at once.
const background = 16

// afterwards gives what does such calls until life ends. Where GitHub is so slow that too much of it has gathered, it is left out.
func (s *Source) afterwards(life context.Context) func(do func(context.Context)) {
	busy := make(chan struct{}, background)
	return func(do func(context.Context)) {
		select {
		case busy <- struct{}{}:
		default:
			s.log.Warn("background call left out", "limit", background)
			return
		}
		go func() {
			defer func() { <-busy }()
			do(life)
		}()
	}
}
