// Package signintest runs an OpenID Connect provider in the process of a test.
package signintest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Client of the program at the provider.
const (
	Client = "backstop"
	Secret = "s3cret"
)

var rawURL = base64.RawURLEncoding

const password = "password at the provider"

// User is somebody whom the provider knows.
type User struct {
	Subject, Name, Email string
	Groups               []string
	Merchants            any // the claim merchants; nil = none
}

// Provider is a provider of zitadel/oidc, whose tokens a test may forge.
type Provider struct {
	*storage.Storage
	URL string // the issuer

	handler *op.Provider
	mu      sync.Mutex
	users   map[string]User // by name
	key     *signingKey
	// Forge changes the claims of ID tokens, and returns the algorithm to sign them with: RS256 or
	// none. nil = they are as they are.
	forge func(claims map[string]any) (algorithm string)
	// InToken puts name and groups into the ID token, where many providers have them; else they are
	// in the userinfo.
	inToken bool
	down    bool
	Calls   map[string]int // by path
}

type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.private }
func (k *signingKey) ID() string                                  { return k.id }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return k.private.Public() }

// Open runs a provider that sends browsers back to redirect.
func Open(t *testing.T, redirect string) *Provider {
	t.Helper()
	p := &Provider{users: map[string]User{}, Calls: map[string]int{}}
	p.Rotate(t)
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(server.Close)
	p.URL = strings.Replace(server.URL, "127.0.0.1", "localhost", 1) // another site than ours, to a browser
	p.Redirect(redirect)
	handler, err := op.NewProvider(&op.Config{CryptoKey: [32]byte{1}, CodeMethodS256: true}, p, op.StaticIssuer(p.URL), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}
	p.handler = handler
	return p
}

// Redirect sets where the provider sends browsers back to. Sign-ins that run end.
func (p *Provider) Redirect(to string) {
	p.Storage = storage.NewStorageWithClients(p, map[string]*storage.Client{Client: storage.WebClient(Client, Secret, to)})
}

// Add lets the provider know a user, or changes one.
func (p *Provider) Add(u User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[u.Name] = u
}

// Rotate replaces the signing key.
func (p *Provider) Rotate(t *testing.T) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = &signingKey{id: "key " + strconv.FormatInt(time.Now().UnixNano(), 10), private: private}
}

// Forge sets how ID tokens are forged; nil = not at all.
func (p *Provider) Forge(how func(claims map[string]any) (algorithm string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forge = how
}

// Set says whether the provider answers, and whether claims are in the ID token.
func (p *Provider) Set(up, inToken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down, p.inToken = !up, inToken
}

// SigningKey implements op.Storage.
func (p *Provider) SigningKey(context.Context) (op.SigningKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key, nil
}

// KeySet implements op.Storage.
func (p *Provider) KeySet(context.Context) ([]op.Key, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []op.Key{publicKey{p.key}}, nil
}

// GetUserByID implements storage.UserStore.
func (p *Provider) GetUserByID(id string) *storage.User {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.users {
		if u.Subject == id {
			return &storage.User{ID: u.Subject, Username: u.Name, Password: password, Email: u.Email, EmailVerified: true}
		}
	}
	return nil
}

// GetUserByUsername implements storage.UserStore.
func (p *Provider) GetUserByUsername(name string) *storage.User {
	p.mu.Lock()
	u, ok := p.users[name]
	p.mu.Unlock()
	if !ok {
		return nil
	}
	return p.GetUserByID(u.Subject)
}

// ExampleClientID implements storage.UserStore.
func (p *Provider) ExampleClientID() string { return Client }

// SetUserinfoFromToken implements op.Storage: the userinfo.
func (p *Provider) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := p.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	p.addGroups(info, subject)
	return nil
}

// SetUserinfoFromRequest implements op.CanSetUserinfoFromRequest: the ID token.
func (p *Provider) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	p.mu.Lock()
	inToken := p.inToken
	p.mu.Unlock()
	if !inToken {
		return p.Storage.SetUserinfoFromRequest(ctx, info, request, scopes)
	}
	p.addGroups(info, request.GetSubject())
	return p.Storage.SetUserinfoFromRequest(ctx, info, request, []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail})
}

func (p *Provider) addGroups(info *oidc.UserInfo, subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.users {
		if u.Subject == subject {
			info.AppendClaims("groups", u.Groups)
			if u.Merchants != nil {
				info.AppendClaims("merchants", u.Merchants)
			}
		}
	}
}

// serve answers as the provider, whose page for signing in asks for a name only.
func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.Calls[r.URL.Path]++
	down, forge := p.down, p.forge
	p.mu.Unlock()
	switch {
	case down:
		http.Error(w, "down", http.StatusBadGateway)
	case r.URL.Path == "/login/username" && r.FormValue("as") == "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><form><input type="hidden" name="authRequestID" value="%s"><input name="as" id="as"><button>OK</button></form>`,
			html.EscapeString(r.FormValue("authRequestID")))
	case r.URL.Path == "/login/username":
		id := r.FormValue("authRequestID")
		if err := p.CheckUsernamePassword(r.FormValue("as"), password, id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(p.handler)(op.ContextWithIssuer(r.Context(), p.URL), id), http.StatusFound)
	case r.URL.Path == "/oauth/token" && forge != nil:
		answer := httptest.NewRecorder()
		p.handler.ServeHTTP(answer, r)
		p.sendForged(w, answer, forge)
	default:
		p.handler.ServeHTTP(w, r)
	}
}

// sendForged replaces the ID token of an answer.
func (p *Provider) sendForged(w http.ResponseWriter, answer *httptest.ResponseRecorder, forge func(map[string]any) string) {
	var body map[string]any
	if json.Unmarshal(answer.Body.Bytes(), &body) != nil || body["id_token"] == nil {
		w.WriteHeader(answer.Code)
		_, _ = io.Copy(w, answer.Body)
		return
	}
	parts := strings.Split(body["id_token"].(string), ".")
	raw, err := rawURL.DecodeString(parts[1])
	claims := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err != nil || decoder.Decode(&claims) != nil {
		http.Error(w, "no token to forge", http.StatusInternalServerError)
		return
	}
	algorithm := forge(claims)
	if raw, err = json.Marshal(claims); err == nil {
		body["id_token"], err = p.sign(algorithm, raw)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// sign signs claims with the key, or not at all.
func (p *Provider) sign(algorithm string, claims []byte) (string, error) {
	if algorithm == "none" {
		return rawURL.EncodeToString([]byte(`{"alg":"none"}`)) + "." + rawURL.EncodeToString(claims) + ".", nil
	}
	p.mu.Lock()
	key := jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: jose.JSONWebKey{Key: p.key.private, KeyID: p.key.id}}
	if algorithm == string(jose.HS256) { // by what everybody knows
		key.Key = p.key.private.N.Bytes()
	}
	p.mu.Unlock()
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// SignIn goes through the provider's pages as a browser does and returns the URL at which it leaves
// them.
func (p *Provider) SignIn(t *testing.T, at, name string) *url.URL {
	t.Helper()
	for range 5 {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(at, p.URL) {
			return u
		}
		if u.Path == "/login/username" {
			at += "&as=" + url.QueryEscape(name)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		to, err := res.Location()
		if err != nil {
			t.Fatalf("%s leads nowhere: %d %s", at, res.StatusCode, text)
		}
		at = to.String()
	}
	t.Fatalf("the provider does not let %s go", name)
	return nil
}
