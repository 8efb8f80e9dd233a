// Package signin lets operators sign in at a provider by OpenID Connect: the code flow with PKCE,
// state and nonce (OpenID Connect Core 1.0, RFC 7636).
package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/egress"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Limits of calls to the provider.
const (
	callTimeout = 4 * time.Second // of one call; a sign-in makes at most three
	maxAnswer   = 1 << 20         // bytes
	// foundFor is how long the discovery document is used. Keys are read again whenever a token is
	// signed with an unknown one.
	foundFor = time.Hour
	// awayFor is how long the provider is not called again after a failure to find it.
	awayFor = 5 * time.Second
)

// ErrAway means that the provider does not answer, or not as a provider.
var ErrAway = errors.New("the provider for signing in cannot be reached")

// Options of a Provider.
type Options struct {
	Issuer, ClientID string
	Secret           config.Secret     // of the client; not set = it has none
	Redirect         string            // our URL to which the provider sends the browser back
	GroupsClaim      string            // of a token: the groups of the person
	MerchantsClaim   string            // those to which the person is limited; "" = the provider limits nobody
	Roles            config.GroupRoles // of the groups
	Allow            []netip.Prefix    // non-public ranges in which the provider may be
	Now              func() time.Time
}

// Provider is where operators sign in. It is safe for concurrent use.
type Provider struct {
	o      Options
	out    *egress.Client
	client *http.Client

	mu       sync.Mutex
	found    *discovered // nil = not yet
	failedAt time.Time   // when it could not be found; zero = it was
}

// discovered is what the provider says of itself.
type discovered struct {
	*oidc.Provider
	at time.Time

	EndSession  string   `json:"end_session_endpoint"`
	Scopes      []string `json:"scopes_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// New returns a Provider. It calls the provider at the first sign-in.
func New(o Options) *Provider {
	out := egress.New(egress.Config{Allow: o.Allow})
	return &Provider{o: o, out: out, client: &http.Client{
		Transport: bounded{out}, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the idle connections.
func (p *Provider) Close() { p.out.Close() }

// Issuer returns the name of the provider in its tokens.
func (p *Provider) Issuer() string { return p.o.Issuer }

// Host returns the provider's host, as people know it.
func (p *Provider) Host() string {
	u, err := url.Parse(p.o.Issuer)
	if err != nil {
		return p.o.Issuer
	}
	return u.Host
}

// bounded limits the size of answers.
type bounded struct{ out http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.out.RoundTrip(req)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, maxAnswer)
	}
	return res, err
}

// within returns a context in which the libraries call the provider by our client.
func (p *Provider) within(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// discover returns what the provider says of itself. Errors: ErrAway.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	if p.found != nil && now.Sub(p.found.at) < foundFor {
		return p.found, nil
	}
	if now.Sub(p.failedAt) < awayFor {
		return p.found.orAway(ErrAway)
	}
	provider, err := oidc.NewProvider(p.within(ctx), p.o.Issuer)
	if err != nil {
		p.failedAt = now
		return p.found.orAway(fmt.Errorf("%w: %w", ErrAway, err))
	}
	d := &discovered{Provider: provider, at: now}
	if err := provider.Claims(d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	for _, at := range []string{provider.Endpoint().AuthURL, d.EndSession} {
		if err := checkPage(at); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAway, err)
		}
	}
	p.found = d
	return d, nil
}

// orAway returns what was found earlier, or the error.
func (d *discovered) orAway(err error) (*discovered, error) {
	if d == nil {
		return nil, err
	}
	return d, nil
}

// checkPage checks an address to which browsers are sent; "" = there is none.
func checkPage(at string) error {
	u, err := url.Parse(at)
	if err != nil || at != "" && (u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		return errors.New("an endpoint of the provider is no http or https URL")
	}
	return nil
}

// oauth returns the client's configuration.
func (p *Provider) oauth(d *discovered) *oauth2.Config {
	c := &oauth2.Config{
		ClientID: p.o.ClientID, ClientSecret: p.o.Secret.Reveal(), Endpoint: d.Endpoint(), RedirectURL: p.o.Redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
	if slices.Contains(d.Scopes, "groups") { // others refuse a scope that they do not know
		c.Scopes = append(c.Scopes, "groups")
	}
	// The library would try both, and a code can be used once.
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if !p.o.Secret.IsSet() || len(d.AuthMethods) > 0 && !slices.Contains(d.AuthMethods, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c
}

// EndURL returns where the provider ends its own session and sends the browser back; "" = nowhere.
func (p *Provider) EndURL(ctx context.Context, back string) string {
	d, err := p.discover(ctx)
	if err != nil || d.EndSession == "" {
		return ""
	}
	u, err := url.Parse(d.EndSession)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.o.ClientID)
	q.Set("post_logout_redirect_uri", back)
	u.RawQuery = q.Encode()
	return u.String()
}

// CallbackPath is where the provider sends browsers back to, below the console's URL.
const CallbackPath = "/login/oidc/callback"

// FromConfig returns the configured provider; nil = there is none.
func FromConfig(c config.Config, now func() time.Time) (*Provider, error) {
	if c.OIDCIssuer == "" {
		return nil, nil
	}
	secret, err := c.OIDCSecret()
	if err != nil {
		return nil, err
	}
	return New(Options{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, Secret: secret, Redirect: c.AdminURL + CallbackPath,
		GroupsClaim: c.OIDCGroupsClaim, MerchantsClaim: c.OIDCMerchantsClaim, Roles: c.OIDCRoles, Allow: c.OIDCAllowCIDRs, Now: now,
	}), nil
}
