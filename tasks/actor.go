package tasks

import "context"

// Console is who asks at a front door that knows no more than that they have the console's token: there are no users behind it.
const Console = "console"

type actorKey struct{}

// WithActor notes in a request's context who asks, as the front door knows them.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor is who asks with a request, for Task.Actor, Cancel and Answer: [Console] if nobody noted a name.
func Actor(ctx context.Context) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name
	}
	return Console
}
