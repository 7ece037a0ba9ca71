package store

import (
	"testing"
	"time"
)

func TestRebuild(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_000_001).UTC()
	before, r := Rebuild{At: at.Add(-time.Microsecond)}, Rebuild{At: at}
	if r.Outdated(r.Name("key")) || !r.Outdated("key") || !r.Outdated(before.Name("key")) {
		t.Error("what is outdated is confused with what is not")
	}
	if none := (Rebuild{}); none.Name("key") != "key" || none.Outdated("key") {
		t.Error("without a rebuild an environment is outdated")
	}
}
