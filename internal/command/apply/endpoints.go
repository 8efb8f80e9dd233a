package apply

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/notify/webhook"
	"backstop/internal/settings"
)

// Limits of addresses.
const (
	maxEndpoints = 20
	maxWeight    = 100
	maxHeaders   = 20
	maxHeader    = 4096 // bytes of one value: a token is a tenth of it
	minDigest    = 10 * time.Second
	maxDigest    = 24 * time.Hour
)

// endpointDecl is one address as the file has it, with secrets readable.
type endpointDecl struct {
	merchant.Endpoint
	at object
	// What the file leaves out stays as it is stored.
	keepsCredentials, keepsKey bool
	ownFormat                  bool // else that of the plain addresses
}

// endpoints reads the addresses beside the plain ones.
func (v value) endpoints(env Env, files *keyFiles) []endpointDecl {
	entries := v.list()
	if len(entries) > maxEndpoints {
		v.wrong("at most %d addresses fit here", maxEndpoints)
		return nil
	}
	seen := names{}
	var all []endpointDecl
	for _, entry := range entries {
		o := entry.object("name", "channel", "url", "events", "weight", "headers", "credentials", "client_cert", "client_key", "format", "digest")
		e := endpointDecl{at: o, Endpoint: merchant.Endpoint{
			Name: o.at("name").code(), Channel: o.at("channel").channel(env), Events: o.at("events").eventTypes(),
			URL: o.at("url").text(maxURL), Weight: int(o.at("weight").whole(1, maxWeight, 1)),
			Headers: o.at("headers").texts(files), Credentials: o.at("credentials").texts(files),
		}}
		seen.once(o.at("name"), "endpoint", e.Name)
		if check := env.target(e.Channel); check != nil && !o.at("url").bad {
			if err := check(e.URL); err != nil {
				o.at("url").wrong("%v", err)
			}
		}
		if e.ownFormat = o.at("format").given(); e.ownFormat {
			e.Format = o.at("format").oneOf(formats...)
		}
		if err := webhook.CheckHeaders(e.Headers); err != nil {
			o.at("headers").wrong("%v", strings.TrimPrefix(err.Error(), webhook.ErrHeader.Error()+": "))
		}
		e.keepsCredentials = !o.at("credentials").given()
		if check := env.Credentials[e.Channel]; check != nil && e.Credentials != nil {
			if err := check(e.Credentials); err != nil {
				o.at("credentials").wrong("%v", err)
			}
		}
		if e.DigestMS = o.at("digest").duration(minDigest, maxDigest, 0).Milliseconds(); e.DigestMS > 0 && e.Channel != notify.Email {
			o.at("digest").wrong("only mails (channel: email) are gathered")
		}
		o.certificate(&e, files)
		all = append(all, e)
	}
	return all
}

// channel reads the name of a channel of this program.
func (v value) channel(env Env) string {
	known := slices.Sorted(maps.Keys(env.Channels))
	known = slices.DeleteFunc(known, func(name string) bool { return name == notify.Webhook })
	return v.oneOf(slices.Insert(known, 0, notify.Webhook)...)
}

// target is what tells whether an address can be used by a channel.
func (e Env) target(channel string) func(string) error {
	if check := e.Channels[channel]; check != nil {
		return check
	}
	if channel == notify.Webhook {
		return e.CheckURL
	}
	return nil
}

// texts reads a set of named texts, nil where it is not given. Values may be
// "file:PATH".
func (v value) texts(files *keyFiles) map[string]string {
	if !v.given() {
		return nil
	}
	o := v.object()
	if len(o.names) > maxHeaders {
		v.wrong("at most %d fit here", maxHeaders)
		return nil
	}
	all := map[string]string{}
	for _, name := range o.names {
		f := o.fields[name]
		if text := f.secretText(files, maxHeader); text != "" {
			all[name] = text
		}
	}
	return all
}

// secretText is a text, or that of the file which "file:PATH" names.
func (v value) secretText(files *keyFiles, longest int) string {
	before := len(v.all.found)
	var text string
	if v.given() && len(v.node.Content) > 0 {
		v.wrong("a text is wanted here")
	} else if v.given() {
		text = v.node.Value
		if path, isFile := strings.CutPrefix(text, filePrefix); isFile {
			var err error
			if text, err = files.read(path); err != nil {
				v.wrong("%v", err)
			}
		}
	}
	switch {
	case len(v.all.found) > before:
		return ""
	case text == "":
		v.wrong("missing")
	case len(text) > longest:
		v.wrong("at most %d characters fit here", longest)
		return ""
	case strings.ContainsRune(text, 0):
		v.wrong("NUL is not allowed here")
		return ""
	}
	return text
}

// certificate reads what is shown to the other side (mTLS).
func (o object) certificate(e *endpointDecl, files *keyFiles) {
	cert, key := o.at("client_cert"), o.at("client_key")
	if !cert.given() {
		if key.given() {
			cert.wrong("missing: a key needs its certificate")
		}
		return
	}
	before := len(o.all.found)
	e.ClientCert = cert.secretText(files, maxKeyFile)
	if e.keepsKey = !key.given(); e.keepsKey {
		return
	}
	e.ClientKey = key.secretText(files, maxKeyFile)
	if len(o.all.found) == before {
		o.fits(*e)
	}
}

// fits says whether certificate and key are a pair. The library's words are left
// out: nothing of a key may be printed.
func (o object) fits(e endpointDecl) {
	if _, err := tls.X509KeyPair([]byte(e.ClientCert), []byte(e.ClientKey)); err != nil {
		o.at("client_cert").wrong("certificate and key are not a pair in PEM: give both as they were issued")
	}
}

// complete is the addresses with what the file leaves out taken from the stored
// ones of the same name and channel.
func (t toldDecl) complete(stored []merchant.Endpoint, format string) []merchant.Endpoint {
	var all []merchant.Endpoint
	for _, e := range t.endpoints {
		if !e.ownFormat {
			e.Format = format
		}
		i := slices.IndexFunc(stored, func(s merchant.Endpoint) bool { return s.Name == e.Name && s.Channel == e.Channel })
		if i >= 0 && e.keepsCredentials {
			e.Credentials = stored[i].Credentials
		}
		if e.keepsKey {
			if i >= 0 {
				e.ClientKey = stored[i].ClientKey
			}
			if e.ClientKey == "" {
				e.at.at("client_key").wrong("missing: none is stored for this address")
			} else {
				e.at.fits(e)
			}
		}
		all = append(all, e.Endpoint)
	}
	return all
}

// notified is how somebody is told, as it is going to be stored.
type notified struct {
	raw     json.RawMessage
	reached bool     // there is an address
	changes []string // what of it differs from what is stored
}

// notify puts what the file says over what is stored. Where stored secrets do not open,
// the file must give them again; where nothing stored can be read, it is written anew.
func (w *writer) notify(owner settings.EndpointOwner, t toldDecl, old json.RawMessage) (n notified, err error) {
	var was merchant.Settings
	known := json.Unmarshal(old, &was) == nil
	is := t.settings
	if known {
		is = t.over(was)
		n.changes = notifyChanges(was, is)
	} else if was = (merchant.Settings{}); old != nil {
		n.changes = []string{"notify"}
	}
	if known && slices.Contains(t.keeps, "endpoints") {
		is.Endpoints = was.Endpoints
	} else {
		open, err := settings.OpenEndpoints(w.env.Keys, owner, was.Endpoints)
		if err != nil {
			open = nil
		}
		plain := t.complete(open, is.Format)
		before, _ := json.Marshal(open)
		after, _ := json.Marshal(plain)
		if known && (err != nil || !bytes.Equal(before, after)) {
			n.changes = append(n.changes, "notify.endpoints")
		}
		is.Endpoints = settings.SealEndpoints(w.env.Keys, owner, plain)
	}
	n.reached = len(is.URLs)+len(is.Endpoints) > 0
	n.raw, err = json.Marshal(is)
	return n, err
}

func notifyChanges(was, is merchant.Settings) (changes []string) {
	if was.Balance == "" {
		was.Balance = merchant.Failover // stored before there was a choice
	}
	if is.Balance == "" {
		is.Balance = merchant.Failover
	}
	for _, f := range toldSettings {
		if !f.same(&was, &is) {
			changes = append(changes, "notify."+f.name)
		}
	}
	return changes
}

// disabledAddresses reads which addresses are disabled, by owner.
func (w *writer) disabledAddresses(ctx context.Context) (map[int64][]string, error) {
	var rows []struct {
		OwnerID  int64
		Endpoint string
	}
	if err := w.tx.NewRaw("SELECT owner_id, endpoint FROM endpoint_health WHERE disabled_at IS NOT NULL").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read disabled addresses: %w", err)
	}
	all := map[int64][]string{}
	for _, r := range rows {
		all[r.OwnerID] = append(all[r.OwnerID], r.Endpoint)
	}
	return all, nil
}

// enable lets the declared addresses of an owner be used again: who declares an
// address wants it to be told.
func (w *writer) enable(ctx context.Context, owner int64, t toldDecl) (changes []string, err error) {
	for _, name := range w.disabled[owner] {
		declared := slices.Contains(t.settings.URLs, name) ||
			slices.ContainsFunc(t.endpoints, func(e endpointDecl) bool { return e.Name == name })
		if !declared {
			continue
		}
		if err := notify.EnableEndpoint(ctx, w.tx, owner, name); err != nil {
			return nil, err
		}
		changes = append(changes, "an address is enabled again")
	}
	return changes, nil
}
