package workspace

import (
	"slices"
	"testing"
)

// A clone remembers the other repositories whose code may be in it until it is recreated. So does a bundle of it, and
// also one that was made anew instead of being kept.
func TestWithIsRemembered(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	expect := func(name string, c Clone, want ...string) {
		t.Helper()
		if stored, err := CodeIn(w, api.Thread, api.Repo); err != nil || !slices.Equal(stored, want) ||
			!slices.Equal(c.With, want) {
			t.Errorf("%s: with %v, stored %v, %v; want %v", name, c.With, stored, err, want)
		}
	}
	keep, mixed, more := api, api, api
	keep.Keep, mixed.Keep, mixed.With, more.Keep, more.With =
		true, true, []string{"acme/web"}, true, []string{"acme/lib", "acme/web"}
	expect("new", checkout(t, w, keep))
	expect("mixed", checkout(t, w, mixed), "acme/web")
	expect("kept", checkout(t, w, keep), "acme/web")
	c := checkout(t, w, more)
	expect("mixed again", c, "acme/lib", "acme/web")
	b, err := w.Snapshot(t.Context(), c, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	expect("recreated", checkout(t, w, api))
	if c, err = w.Restore(t.Context(), keep, b); err != nil {
		t.Fatal(err)
	}
	expect("restored", c, "acme/lib", "acme/web")
	expect("recreated again", checkout(t, w, api))
}

// A stranger's content is remembered although the files of the clone before it were taken over.
func TestStrangeIsNotKeptInATakenOverClone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	checkout(t, w, api)
	strange, keep := api, api
	strange.Strange, keep.Keep = true, true
	checkout(t, w, strange)
	if c := checkout(t, w, keep); !c.Fresh {
		t.Error("the clone is kept")
	}
}
