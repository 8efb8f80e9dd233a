package signin_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/config"
	"backstop/internal/signin"
	"backstop/internal/signin/signintest"
)

const redirect = "http://127.0.0.1:8080/login/oidc/callback"

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func options(issuer string) signin.Options {
	return signin.Options{
		Issuer: issuer, ClientID: signintest.Client, Secret: config.NewSecret(signintest.Secret), Redirect: redirect, GroupsClaim: "groups",
		Roles: config.GroupRoles{{Group: "leads", Role: "lead"}, {Group: "payments", Role: "ops"}}, Allow: loopback, Now: time.Now,
	}
}

// open returns a provider who knows li, and the program's side of it.
func open(t *testing.T) (*signintest.Provider, *signin.Provider) {
	t.Helper()
	there := signintest.Open(t, redirect)
	there.Add(signintest.User{Subject: "s-1", Name: "Li.Hang@example.com", Email: "li@example.com", Groups: []string{"payments", "leads"}})
	here := signin.New(options(there.URL))
	t.Cleanup(here.Close)
	return there, here
}

// signIn goes through the provider.
func signIn(t *testing.T, there *signintest.Provider, here *signin.Provider, again bool) (*signin.Person, error) {
	t.Helper()
	at, flow, err := here.Begin(t.Context(), "/orders", again)
	if err != nil {
		return nil, err
	}
	back := there.SignIn(t, at, "Li.Hang@example.com").Query()
	answer := signin.Callback{State: back.Get("state"), Code: back.Get("code"), Error: back.Get("error"), Issuer: back.Get("iss")}
	if err := here.Check(flow, answer); err != nil {
		return nil, err
	}
	return here.Finish(t.Context(), flow, answer)
}

func TestSigningInAtTheProvider(t *testing.T) {
	t.Parallel()
	there, here := open(t)
	for _, inToken := range []bool{false, true} { // of the userinfo, of the ID token
		there.Set(true, inToken)
		who, err := signIn(t, there, here, false)
		if err != nil || who.Issuer != there.URL || who.Subject != "s-1" || who.Name != "li.hang" || who.Roles != access.RolesOf(access.Lead, access.Ops) || who.At == nil {
			t.Errorf("%+v, %v", who, err)
		}
	}
	if n := there.Calls["/userinfo"]; n != 1 {
		t.Errorf("the userinfo was read %d times", n)
	}
	if n := there.Calls["/.well-known/openid-configuration"]; n != 1 {
		t.Errorf("the discovery document was read %d times", n)
	}
	there.Add(signintest.User{Subject: "s-1", Name: "Li.Hang@example.com", Groups: []string{"others", "lead"}})
	if who, err := signIn(t, there, here, false); err != nil || who.Roles != "" {
		t.Errorf("without a group of ours: %+v, %v", who, err)
	}
	there.Rotate(t)
	if _, err := signIn(t, there, here, false); err != nil {
		t.Errorf("after the key was rotated: %v", err)
	}
}

func TestTheProviderLimitsToMerchants(t *testing.T) {
	t.Parallel()
	there, plain := open(t)
	o := options(there.URL)
	o.MerchantsClaim = "merchants"
	here := signin.New(o)
	t.Cleanup(here.Close)
	user := signintest.User{Subject: "s-1", Name: "Li.Hang@example.com", Groups: []string{"payments"}}
	for _, x := range []struct {
		claim any
		want  string
		none  bool
	}{
		{nil, "", false},
		{"m1", "m1", false},
		{[]string{"m1", "m2"}, "m1,m2", false},
		{[]string{}, "", true},
		{7, "", true},
		{" , ", " , ", true},
	} {
		user.Merchants = x.claim
		there.Add(user)
		for _, inToken := range []bool{false, true} {
			there.Set(true, inToken)
			who, err := signIn(t, there, here, false)
			if err != nil || *who.Merchants != x.want || who.NoMerchant != x.none {
				t.Errorf("%v in the token %t: %+v, %v", x.claim, inToken, who, err)
			}
		}
		if who, err := signIn(t, there, plain, false); err != nil || who.Merchants != nil || who.NoMerchant {
			t.Errorf("%v, which nobody asked for: %+v, %v", x.claim, who, err)
		}
	}
}

func TestTheProviderIsAskedWithPKCE(t *testing.T) {
	t.Parallel()
	there, here := open(t)
	at, flow, err := here.Begin(t.Context(), "/", true)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(at)
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") != flow.State || q.Get("nonce") != flow.Nonce ||
		q.Get("prompt") != "login" || q.Get("max_age") != "600" || strings.Contains(at, flow.Verifier) {
		t.Errorf("%s", at)
	}
	back := there.SignIn(t, at, "Li.Hang@example.com").Query()
	answer := signin.Callback{State: back.Get("state"), Code: back.Get("code")}
	other := flow
	other.Verifier = strings.Repeat("x", len(flow.Verifier))
	if _, err := here.Finish(t.Context(), other, answer); !errors.Is(err, signin.ErrDenied) {
		t.Errorf("a stolen code without its verifier: %v", err)
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	there, here := open(t)
	now := time.Now().Unix()
	set := func(name string, value any) func(map[string]any) string {
		return func(claims map[string]any) string {
			claims[name] = value
			return "RS256"
		}
	}
	signed := func(algorithm string) func(map[string]any) string {
		return func(map[string]any) string { return algorithm }
	}
	for name, c := range map[string]struct {
		forge func(map[string]any) string
		again bool
		want  error
	}{
		"as it is":                {signed("RS256"), true, nil},
		"another issuer":          {set("iss", "https://evil.example.com"), false, signin.ErrToken},
		"the issuer with a slash": {set("iss", there.URL+"/"), false, signin.ErrToken},
		"another audience":        {set("aud", []string{"another"}), false, signin.ErrToken},
		"no audience":             {set("aud", nil), false, signin.ErrToken},
		"for two, made for another": {func(c map[string]any) string {
			c["azp"] = "another"
			return set("aud", []string{signintest.Client, "another"})(c)
		}, false, signin.ErrToken},
		"for two, made for nobody": {func(c map[string]any) string {
			delete(c, "azp")
			return set("aud", []string{signintest.Client, "another"})(c)
		}, false, signin.ErrToken},
		"another nonce":                {set("nonce", "another"), false, signin.ErrToken},
		"no nonce":                     {set("nonce", nil), false, signin.ErrToken},
		"expired":                      {set("exp", now-1), false, signin.ErrToken},
		"not signed":                   {signed("none"), false, signin.ErrToken},
		"signed by what is public":     {signed("HS256"), false, signin.ErrToken},
		"no subject":                   {set("sub", ""), false, signin.ErrToken},
		"signed in tomorrow":           {set("auth_time", now+86400), false, signin.ErrToken},
		"signed in an hour ago":        {set("auth_time", now-3600), false, nil},
		"signed in an hour ago, again": {set("auth_time", now-3600), true, signin.ErrNotFresh},
		"signed in at no time, again":  {set("auth_time", nil), true, signin.ErrNotFresh},
	} {
		there.Forge(c.forge)
		if who, err := signIn(t, there, here, c.again); !errors.Is(err, c.want) || (err == nil) != (who != nil) {
			t.Errorf("%s: %+v, %v; want %v", name, who, err, c.want)
		}
	}
}

func TestAnswersBelongToASignInOfTheBrowser(t *testing.T) {
	t.Parallel()
	there, here := open(t)
	_, flow, err := here.Begin(t.Context(), "/", false)
	if err != nil {
		t.Fatal(err)
	}
	late := flow
	late.Until = time.Now().UnixMicro() - 1
	for name, c := range map[string]struct {
		flow   signin.Flow
		answer signin.Callback
		want   error
	}{
		"fine":              {flow, signin.Callback{State: flow.State, Code: "c"}, nil},
		"with the issuer":   {flow, signin.Callback{State: flow.State, Code: "c", Issuer: there.URL}, nil},
		"another issuer":    {flow, signin.Callback{State: flow.State, Code: "c", Issuer: "https://evil.example.com"}, signin.ErrState},
		"another state":     {flow, signin.Callback{State: "x", Code: "c"}, signin.ErrState},
		"no sign-in":        {signin.Flow{}, signin.Callback{Code: "c"}, signin.ErrState},
		"too late":          {late, signin.Callback{State: flow.State, Code: "c"}, signin.ErrState},
		"the provider's no": {flow, signin.Callback{State: flow.State, Error: "access_denied"}, signin.ErrDenied},
		"no code":           {flow, signin.Callback{State: flow.State}, signin.ErrDenied},
	} {
		if err := here.Check(c.flow, c.answer); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := here.Finish(t.Context(), flow, signin.Callback{State: flow.State, Code: "made-up"}); !errors.Is(err, signin.ErrDenied) {
		t.Errorf("a code that the provider does not know: %v", err)
	}
}

func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	there, _ := open(t)
	now := time.Now()
	o := options(there.URL)
	o.Now = func() time.Time { return now }
	here := signin.New(o)
	t.Cleanup(here.Close)
	there.Set(false, false)
	for range 2 {
		if _, _, err := here.Begin(t.Context(), "/", false); !errors.Is(err, signin.ErrAway) {
			t.Errorf("away: %v", err)
		}
	}
	if n := there.Calls["/.well-known/openid-configuration"]; n != 1 {
		t.Errorf("called %d times within 5 s", n)
	}
	if to := here.EndURL(t.Context(), "/login"); to != "" {
		t.Errorf("its own sign-out is at %q", to)
	}
	there.Set(true, false)
	now = now.Add(6 * time.Second)
	at, flow, err := here.Begin(t.Context(), "/", false)
	if err != nil {
		t.Fatalf("back again: %v", err)
	}
	if to, err := url.Parse(here.EndURL(t.Context(), "https://x.example/login")); err != nil || to.Path != "/end_session" ||
		to.Query().Get("post_logout_redirect_uri") != "https://x.example/login" || to.Query().Get("client_id") != signintest.Client {
		t.Errorf("its own sign-out is at %v: %v", to, err)
	}
	there.SignIn(t, at, "Li.Hang@example.com")
	there.Set(false, false)
	if _, err := here.Finish(t.Context(), flow, signin.Callback{State: flow.State, Code: "c"}); !errors.Is(err, signin.ErrAway) {
		t.Errorf("away when the code is exchanged: %v", err)
	}
	// What was found is used on while the provider does not answer.
	now = now.Add(2 * time.Hour)
	if _, _, err := here.Begin(t.Context(), "/", false); err != nil {
		t.Errorf("later: %v", err)
	}
}

func TestTheProviderIsReachedWhereTheSettingsAllowIt(t *testing.T) {
	t.Parallel()
	there, _ := open(t)
	o := options(there.URL)
	o.Allow = nil
	here := signin.New(o)
	t.Cleanup(here.Close)
	if _, _, err := here.Begin(t.Context(), "/", false); !errors.Is(err, signin.ErrAway) || there.Calls["/.well-known/openid-configuration"] != 0 {
		t.Errorf("a private address: %v", err)
	}
}

// Neither a log line nor an error may hold what opens the provider or the sign-in.
func TestErrorsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	there, _ := open(t)
	o := options(there.URL)
	o.Secret = config.NewSecret("wr0ng-s3cret")
	here := signin.New(o)
	t.Cleanup(here.Close)
	_, flow, err := here.Begin(t.Context(), "/", false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = here.Finish(t.Context(), flow, signin.Callback{State: flow.State, Code: "the-c0de"})
	if !errors.Is(err, signin.ErrDenied) {
		t.Fatalf("a wrong secret of the client: %v", err)
	}
	for _, secret := range []string{"wr0ng-s3cret", "the-c0de", flow.Verifier} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
}
