package intake

import (
	"context"

	"github.com/errand-fleet/errand/tasks"
)

// Board posts notices.
type Board interface {
	// Tell posts a notice once, even if it is called again with it in another process. An *tasks.ErrLater says when to
	// try again. An HTTP attempt lasts at most 10 s.
	Tell(ctx context.Context, n tasks.Notice) error
}
