package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Errors of a sign-in.
var (
	// ErrState means that the answer belongs to no sign-in that this browser began within FlowLife.
	ErrState = errors.New("this answer belongs to no running sign-in")
	// ErrDenied means that the provider did not let the person in.
	ErrDenied = errors.New("the provider refused the sign-in")
	// ErrToken means that the ID token is not valid.
	ErrToken = errors.New("the provider's ID token is not valid")
	// ErrNotFresh means that the person was to sign in anew, and the provider does not say that it happened.
	ErrNotFresh = errors.New("the provider does not say that the person has signed in just now (auth_time)")
)

// Limits of a sign-in.
const (
	// FlowLife is how long a person may take at the provider.
	FlowLife = 10 * time.Minute
	// clockSkew is how far the provider's clock may be ahead.
	clockSkew = time.Minute
	// maxSubject is the length that OpenID Connect Core (2) allows.
	maxSubject = 255
)

// Flow is a sign-in that a browser began. Only that browser may have it, sealed.
type Flow struct {
	State, Nonce, Verifier string
	Next                   string // where to go afterwards
	Again                  bool   // the person has to sign in anew
	Until                  int64  // Unix µs
}

// Callback is the provider's answer by way of the browser.
type Callback struct{ State, Code, Error, Issuer string }

// Person is who signed in.
type Person struct {
	access.Identity
	At *int64 // when (Unix µs); nil = the provider did not say
}

// Begin begins a sign-in and returns the page of the provider. Errors: ErrAway.
func (p *Provider) Begin(ctx context.Context, next string, again bool) (to string, f Flow, err error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", f, err
	}
	f = Flow{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, Again: again,
		Until: p.o.Now().Add(FlowLife).UnixMicro(),
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce)}
	if again {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"),
			oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(access.FreshFor/time.Second))))
	}
	return p.oauth(d).AuthCodeURL(f.State, options...), f, nil
}

// Check checks that an answer belongs to the sign-in. Errors: ErrState, ErrDenied.
func (p *Provider) Check(f Flow, c Callback) error {
	switch {
	case f.State == "" || subtle.ConstantTimeCompare([]byte(f.State), []byte(c.State)) == 0,
		f.Until < p.o.Now().UnixMicro(),
		c.Issuer != "" && c.Issuer != p.o.Issuer: // RFC 9207
		return ErrState
	case c.Error != "" || c.Code == "":
		return ErrDenied
	}
	return nil
}

// Finish exchanges the code of a checked answer for who signed in. Errors: ErrAway, ErrDenied,
// ErrToken, ErrNotFresh.
func (p *Provider) Finish(ctx context.Context, f Flow, c Callback) (*Person, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx = p.within(ctx)
	token, err := p.oauth(d).Exchange(ctx, c.Code, oauth2.VerifierOption(f.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < 500 {
		return nil, fmt.Errorf("%w: %.64q", ErrDenied, refused.ErrorCode) // its text quotes the answer
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.Verifier(&oidc.Config{ClientID: p.o.ClientID, Now: p.o.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) == 0 {
		return nil, fmt.Errorf("%w: its nonce is another one", ErrToken)
	}
	all, err := p.claims(ctx, d, id, token)
	if err != nil {
		return nil, err
	}
	return p.person(f, id, all)
}

// claims are what the provider says of a person.
type claims map[string]json.RawMessage

// claims returns those of the ID token and, where it has no groups, no merchants or no name, of the userinfo.
func (p *Provider) claims(ctx context.Context, d *discovered, id *oidc.IDToken, token *oauth2.Token) (all claims, err error) {
	if err := id.Claims(&all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	_, grouped := all[p.o.GroupsClaim]
	_, limited := all[p.o.MerchantsClaim]
	if grouped && (limited || p.o.MerchantsClaim == "") && all.name() != "" || d.UserInfoEndpoint() == "" {
		return all, nil
	}
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	var more claims
	if err := info.Claims(&more); err != nil || info.Subject != id.Subject {
		return nil, fmt.Errorf("%w: the userinfo is of somebody else", ErrToken)
	}
	for name, value := range more {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	return all, nil
}

func (c claims) text(name string) (text string) {
	_ = json.Unmarshal(c[name], &text) // a claim of another type is none
	return text
}

// texts returns a claim that is a list, or a single text.
func (c claims) texts(name string) (all []string) {
	if text := c.text(name); text != "" {
		return []string{text}
	}
	_ = json.Unmarshal(c[name], &all)
	return all
}

func (c claims) time(name string) *time.Time {
	var seconds *float64
	if json.Unmarshal(c[name], &seconds) != nil || seconds == nil {
		return nil
	}
	at := time.Unix(int64(*seconds), 0)
	return &at
}

// person returns who the claims are about.
func (p *Provider) person(f Flow, id *oidc.IDToken, all claims) (*Person, error) {
	// A token for several clients names the one that asked (OpenID Connect Core, 3.1.3.7).
	if party := all.text("azp"); party != p.o.ClientID && (party != "" || len(id.Audience) > 1) {
		return nil, fmt.Errorf("%w: it was made for another client", ErrToken)
	}
	if id.Subject == "" || len(id.Subject) > maxSubject {
		return nil, fmt.Errorf("%w: its subject has no or too many characters", ErrToken)
	}
	who := &Person{Identity: access.Identity{
		Issuer: p.o.Issuer, Subject: id.Subject, Name: all.name(), Roles: p.roles(all.texts(p.o.GroupsClaim)),
	}}
	who.Merchants, who.NoMerchant = p.merchants(all)
	now := p.o.Now()
	at := all.time("auth_time")
	if at != nil && at.After(now.Add(clockSkew)) {
		return nil, fmt.Errorf("%w: its auth_time is in the future", ErrToken)
	}
	if f.Again && (at == nil || now.Sub(*at) >= access.FreshFor) {
		return nil, ErrNotFresh
	}
	if at != nil {
		us := min(at.UnixMicro(), now.UnixMicro())
		who.At = &us
	}
	return who, nil
}

// name returns the name to have here: preferred_username, else the verified e-mail address, both
// without a domain; "" = neither is valid as one.
func (c claims) name() string {
	given := []string{c.text("preferred_username")}
	if verified := string(c["email_verified"]); verified == "true" || verified == `"true"` {
		given = append(given, c.text("email"))
	}
	for _, text := range given {
		name, _, _ := strings.Cut(strings.ToLower(text), "@")
		if access.IsName(name) {
			return name
		}
	}
	return ""
}

// roles returns those of all groups of the setting that the person is in; "" = none.
func (p *Provider) roles(groups []string) access.Roles {
	var names []string
	for _, x := range p.o.Roles {
		if slices.Contains(groups, x.Group) {
			names = append(names, x.Role)
		}
	}
	return access.RolesOf(names...)
}

// merchants returns the codes of the merchants to which the person is limited, separated by commas; nil =
// the provider does not decide. none: its claim is empty, which is not taken for no limit.
func (p *Provider) merchants(all claims) (codes *string, none bool) {
	if p.o.MerchantsClaim == "" {
		return nil, false
	}
	if _, ok := all[p.o.MerchantsClaim]; !ok {
		return new(string), false
	}
	text := strings.Join(all.texts(p.o.MerchantsClaim), ",")
	return &text, strings.Trim(text, ", ") == ""
}
