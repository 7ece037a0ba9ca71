package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/errand-fleet/errand/config"
)

// credentialName returns the name under which workers share the limits of the model's credential. It is the same on
// every worker. The credential cannot be derived from it, because it is long and random.
func credentialName(c config.Config) string {
	secret := c.Model.APIKey.Reveal() + c.Model.OAuthToken.Reveal() + c.Model.AuthToken.Reveal()
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"errand credential", c.Model.BaseURL, secret}, "\x00")))
	return hex.EncodeToString(sum[:6])
}
