// Package bedrock is the model in Amazon Bedrock.
package bedrock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/errand-fleet/errand/agent/cloud"
)

// Config says which Bedrock, and with which credential.
type Config struct {
	Region   string // empty: that of the profile, or of AWS' own configuration
	Profile  string // in AWS' own files; empty: as they say
	Endpoint string // base URL of all requests; empty: those of the region
	Key      string // an API key of Bedrock; empty: credentials of AWS, by the chain of its SDK
}

// Bedrock implements [cloud.Provider].
type Bedrock struct {
	cfg         Config
	runtime     *url.URL // base of the runtime
	control     *url.URL // base of the control plane, which lists inference profiles
	credentials aws.CredentialsProvider
	last        atomic.Pointer[aws.Credentials] // that credentials gave; nil: none yet
	signer      *v4.Signer
}

// renewBefore is how long before they expire credentials of AWS are renewed: a request with them may take a while. By
// itself the SDK does so only in containers.
const renewBefore = 5 * time.Minute

// renewWait is how long a request waits for new credentials while it could use the earlier ones.
const renewWait = 5 * time.Second

// New reads AWS' configuration. It asks for no credential yet.
func New(ctx context.Context, cfg Config) (*Bedrock, error) {
	options := []func(*config.LoadOptions) error{
		config.WithCredentialsCacheOptions(func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore }),
	}
	if cfg.Region != "" {
		options = append(options, config.WithRegion(cfg.Region))
	}
	if cfg.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(cfg.Profile))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if cfg.Region = loaded.Region; cfg.Region == "" {
		return nil, errors.New("use Bedrock: no region: set AWS_REGION")
	}
	b := &Bedrock{cfg: cfg, credentials: loaded.Credentials, signer: v4.NewSigner()}
	host := cfg.Region + "." + domain(cfg.Region)
	if b.runtime, err = cloud.Base(cmp.Or(cfg.Endpoint, "https://bedrock-runtime."+host)); err != nil {
		return nil, err
	}
	b.control, err = cloud.Base(cmp.Or(cfg.Endpoint, "https://bedrock."+host))
	return b, err
}

// domain returns the domain of a region's services.
func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// Name implements cloud.Provider.
func (b *Bedrock) Name() string { return "Amazon Bedrock" }

// Host implements cloud.Provider.
func (b *Bedrock) Host() string { return b.runtime.Host }

// Environment implements cloud.Provider.
func (b *Bedrock) Environment(base string) map[string]string {
	return map[string]string{
		"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "AWS_REGION": b.cfg.Region,
		"ANTHROPIC_BEDROCK_BASE_URL": base,
	}
}

// profiles are where the CLI looks for the models of an account (seen with CLI 2.1.329).
const profiles = "/inference-profiles"

var (
	invoke  = regexp.MustCompile(`^/model/([^/]+)/(invoke|invoke-with-response-stream|count-tokens)$`)
	profile = regexp.MustCompile(`^` + profiles + `/([^/]+)$`)

	// identifier is the form of the ID of a model or an inference profile, or of an ARN. Whatever else could become
	// another path at a gateway that decodes it.
	identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)?$`)
)

// unescape returns the ID that is a part of a path.
func unescape(part string) (id string, ok bool) {
	id, err := url.PathUnescape(part)
	return id, err == nil && identifier.MatchString(id) && !strings.Contains(id, "..")
}

// Question implements cloud.Provider.
func (b *Bedrock) Question(method, path string) (q cloud.Question, ok bool) {
	if method == http.MethodGet {
		if ok = path == profiles; !ok {
			if m := profile.FindStringSubmatch(path); m != nil {
				_, ok = unescape(m[1])
			}
		}
		return cloud.Question{Free: true}, ok
	}
	m := invoke.FindStringSubmatch(path)
	if method != http.MethodPost || m == nil {
		return q, false
	}
	model, ok := unescape(m[1])
	return cloud.Question{
		Model: model, Streamed: m[2] == "invoke-with-response-stream", Free: m[2] == "count-tokens",
	}, ok
}

// Smallest implements cloud.Provider. The CLI uses the inference profile of its part of the world (CLI 2.1.329).
func (b *Bedrock) Smallest(model string) (path, named, version string) {
	if model = cmp.Or(model, "claude-opus-5-5"); strings.HasPrefix(model, "claude-") {
		part, _, _ := strings.Cut(b.cfg.Region, "-")
		if part != "eu" && part != "us" {
			part = "global"
		}
		model = part + ".anthropic." + model
	}
	return "/model/" + url.PathEscape(model) + "/invoke", model, "bedrock-2023-05-31"
}

// Direct implements cloud.Provider.
func (b *Bedrock) Direct(u *url.URL) {
	base := b.runtime
	if strings.HasPrefix(u.Path, profiles) {
		base = b.control
	}
	cloud.Redirect(u, base)
}

// Sign implements cloud.Provider.
func (b *Bedrock) Sign(req *http.Request, body []byte) error {
	if b.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+b.cfg.Key)
		return nil
	}
	credentials, err := b.retrieve(req.Context())
	if err != nil {
		return fmt.Errorf("get credentials of AWS: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := b.signer.SignHTTP(req.Context(), credentials, req, hex.EncodeToString(sum[:]), "bedrock", b.cfg.Region,
		time.Now()); err != nil {
		return fmt.Errorf("sign a request to Bedrock: %w", err)
	}
	return nil
}

// retrieve returns the credentials, which the SDK keeps until it is time to renew them. If that fails or takes long,
// they are used as long as they last.
func (b *Bedrock) retrieve(ctx context.Context) (aws.Credentials, error) {
	last := b.last.Load()
	// The SDK has subtracted renewBefore.
	lasting := last != nil && (!last.CanExpire || time.Now().Before(last.Expires.Add(renewBefore)))
	if lasting {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, renewWait)
		defer cancel()
	}
	found, err := b.credentials.Retrieve(ctx)
	switch {
	case err == nil:
		b.last.Store(&found)
	case lasting:
		return *last, nil
	case last == nil && strings.Contains(err.Error(), "ec2imds"):
		// The SDK asks the machine last, if it has found no credential. The failure to reach it is not the cause.
		return found, errors.New(err.Error())
	}
	return found, err
}
