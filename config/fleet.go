package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Fleet is what its processes have in common.
type Fleet struct {
	Token        Secret `env:"ERRAND_FLEET_TOKEN"`   // opens the logs that workers serve; empty = see FleetToken
	MetricsToken Secret `env:"ERRAND_METRICS_TOKEN"` // opens /metrics and nothing else; empty = workers show none, and front doors to the console's token
}

// FleetToken is what a front door shows to the workers of other machines. Unless one is set it is made from the password of Redis, which
// all of them have, and which cannot be told from it. Empty: there is no password either, and no worker serves its logs.
func (c Config) FleetToken() Secret {
	if c.Fleet.Token != "" {
		return c.Fleet.Token
	}
	passwords := c.Redis.URL.secrets()
	if len(passwords) == 0 || passwords[0] == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(passwords[0]))
	_, _ = mac.Write([]byte("errand fleet token")) // a hash takes everything
	return Secret(hex.EncodeToString(mac.Sum(nil)))
}
