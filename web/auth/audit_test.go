package auth

import (
	"net/url"
	"testing"
)

// A query of the audit log is read or refused, and a part of it is not left out.
func TestAuditQueryIsReadOrRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "skip=3&limit=10&from=slack&since=2026-01-31": true, "since=2026-01-31T12:00:00Z": true, "limit=100": true,
		"skip=x": false, "skip=-1": false, "limit=x": false, "limit=0": false, "limit=101": false, "from=mail": false,
		"since=monday": false,
	} {
		q, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := NewAuditQuery(q, 20, 100); (err == nil) != ok {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
}
