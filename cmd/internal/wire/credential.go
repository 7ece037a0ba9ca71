package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/errand-fleet/errand/config"
)

// credentialName stands for the model's credential where workers tell each other of its limits. The same credential has the same name on
// every worker, and cannot be found by it: it is long and random.
func credentialName(c config.Config) string {
	secret := c.Model.APIKey.Reveal() + c.Model.OAuthToken.Reveal() + c.Model.AuthToken.Reveal()
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"errand credential", c.Model.BaseURL, secret}, "\x00")))
	return hex.EncodeToString(sum[:6])
}
