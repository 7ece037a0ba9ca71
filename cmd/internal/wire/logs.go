package wire

import (
	"net"
	"os"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks/worker"
)

// WorkerURL returns the URL at which a worker that listens at an address can be reached for logs. An address of all
// interfaces becomes the machine's name. A loopback address stays and works on this machine only. The URL is empty if
// the fleet has no token.
func WorkerURL(c config.Config, listens net.Addr) string {
	if c.FleetToken() == "" {
		return ""
	}
	if c.Worker.URL != "" {
		return c.Worker.URL
	}
	host, port, err := net.SplitHostPort(listens.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}

// retention returns how long a worker keeps data on its disk.
func retention(k config.Keep) worker.Retention {
	const gb = 1_000_000_000
	return worker.Retention{
		Logs:    worker.Bound{Age: k.Logs, Size: int64(k.LogsGB) * gb},
		Threads: worker.Bound{Age: k.Clones, Size: int64(k.ClonesGB) * gb},
	}
}
