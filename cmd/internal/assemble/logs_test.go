package assemble

import (
	"net"
	"os"
	"testing"

	"github.com/errand-fleet/errand/config"
)

func TestWorkerURL(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	withToken := config.Config{Redis: config.Redis{URL: "redis://:secret@localhost:6379/0"}}
	told := withToken
	told.Worker.URL = "https://w1.example"
	for _, tc := range []struct {
		c       config.Config
		ip      string
		want    string
		meaning string
	}{
		{withToken, "127.0.0.1", "http://127.0.0.1:8081", "loopback"},
		{withToken, "::1", "http://[::1]:8081", "loopback"},
		{withToken, "10.0.0.7", "http://10.0.0.7:8081", "one interface"},
		{withToken, "::", "http://" + host + ":8081", "all interfaces"},
		{withToken, "0.0.0.0", "http://" + host + ":8081", "all interfaces"},
		{told, "0.0.0.0", "https://w1.example", "told"},
		{config.Config{}, "10.0.0.7", "", "no token"},
	} {
		if got := WorkerURL(tc.c, &net.TCPAddr{IP: net.ParseIP(tc.ip), Port: 8081}); got != tc.want {
			t.Errorf("%s: %s is reached at %q, want %q", tc.meaning, tc.ip, got, tc.want)
		}
	}
}
