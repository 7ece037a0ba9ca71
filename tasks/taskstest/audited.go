package taskstest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Audited returns the entries of the audit log, the oldest first: who, what, status and the ID of the task.
func Audited(ctx context.Context, s *store.Store) ([]string, error) {
	stored, err := s.Audit.List(ctx, 0, 1000)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, one := range slices.Backward(stored) {
		var e desk.AuditEntry
		if err := json.Unmarshal(one.Body, &e); err != nil {
			return nil, fmt.Errorf("read audit entry: %w", err)
		}
		line := fmt.Sprintf("%s (%s) %s: %d %s", e.Who, e.Name, e.What, e.Status,
			strings.TrimPrefix(e.Result, "/tasks/"))
		list = append(list, strings.TrimSpace(line))
	}
	return list, nil
}
