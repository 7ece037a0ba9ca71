package tasks

import (
	"encoding/json"
	"log/slog"
)

// ReadMemo decodes the value that a source stores under a name. If the value cannot be decoded, because another
// version wrote it, ReadMemo logs that and leaves v unchanged.
func ReadMemo[T any](log *slog.Logger, name string, body json.RawMessage, v *T) {
	if body == nil {
		return
	}
	var read T
	if err := json.Unmarshal(body, &read); err != nil {
		log.Warn("unreadable memo", "memo", name, "err", err)
		return
	}
	*v = read
}
