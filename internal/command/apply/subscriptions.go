package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/textlimit"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/settings"
)

// subscriptionDecl is one of the house's own systems.
type subscriptionDecl struct {
	at      object
	code    string
	name    string
	enabled bool
	follows []string // merchants' codes; nil = all
	secrets [][]byte // newest first; nil where the file gives none
	told    toldDecl
	// What the file leaves out.
	keepsName, keepsEnabled, keepsFollows bool
}

func (d *declared) subscription(env Env, v value, files *keyFiles, seen names) {
	o := v.object(append([]string{"code", "name", "enabled", "merchants", "signing_secret", "signing_secrets"}, toldFields...)...)
	s := subscriptionDecl{
		at: o, code: o.at("code").code(), name: o.at("name").text(maxText), enabled: o.at("enabled").flag(true),
		follows: o.at("merchants").followed(), secrets: o.secrets(), told: o.told(env, files),
		keepsName: o.leftOut("name"), keepsEnabled: o.leftOut("enabled"), keepsFollows: o.leftOut("merchants"),
	}
	seen.once(o.at("code"), "subscription", s.code)
	if s.name == "" {
		s.name = s.code
	}
	for _, e := range s.told.endpoints {
		if e.Channel == notify.Websocket {
			e.at.at("channel").wrong("a system of the house has no API key to connect with: use another channel")
		}
	}
	d.house = append(d.house, s)
}

// followed is a list of merchants' codes, or nil for "all", which is also meant
// where the file says nothing.
func (v value) followed() []string {
	if !v.given() || len(v.node.Content) == 0 && v.node.Value == "all" {
		return nil
	}
	var codes []string
	seen := names{}
	before := len(v.all.found)
	for _, e := range v.list() {
		codes = append(codes, e.code())
		seen.once(e, "merchant", codes[len(codes)-1])
	}
	if len(codes) == 0 && len(v.all.found) == before {
		v.wrong("use all, or a list of merchants")
	}
	return codes
}

func (w *writer) subscriptions(ctx context.Context, d *declared) error {
	if len(d.house) == 0 {
		return nil
	}
	var rows []settings.SubscriptionRow
	if err := w.tx.NewSelect().Model(&rows).ExcludeColumn("created_at", "updated_at", "disabled_at").
		ColumnExpr("CAST(disabled_at AS BIGINT) AS disabled_at").Scan(ctx); err != nil { // SQLite may keep a text there
		return fmt.Errorf("read subscriptions: %w", err)
	}
	known := make(map[string]*settings.SubscriptionRow, len(rows))
	for i := range rows {
		known[rows[i].Code] = &rows[i]
	}
	if err := w.checkSubscriptions(ctx, d, known); err != nil {
		return err
	}
	for _, s := range d.house {
		if err := w.subscription(ctx, s, known[s.code]); err != nil {
			return fmt.Errorf("subscription %s: %w", s.code, err)
		}
	}
	return d.problems.err()
}

// checkSubscriptions finds what only the database can tell: merchants that are
// not there, and a new subscription whose webhooks nothing would sign.
func (w *writer) checkSubscriptions(ctx context.Context, d *declared, known map[string]*settings.SubscriptionRow) error {
	var merchants []string
	if err := w.tx.NewSelect().Model((*merchant.Row)(nil)).Column("code").Scan(ctx, &merchants); err != nil {
		return fmt.Errorf("read merchants: %w", err)
	}
	there := make(map[string]bool, len(merchants))
	for _, code := range merchants {
		there[code] = true
	}
	for _, s := range d.house {
		for i, code := range s.follows {
			if !there[code] {
				s.at.at("merchants").list()[i].wrong("there is no merchant %q: declare it first", textlimit.Clip(code, shownMost))
			}
		}
		webhooks := len(s.told.settings.URLs) > 0 ||
			slices.ContainsFunc(s.told.endpoints, func(e endpointDecl) bool { return e.Channel == notify.Webhook })
		stored := known[s.code] != nil && string(known[s.code].SigningSecrets) != "[]"
		if s.secrets == nil && webhooks && !stored {
			s.at.at("signing_secret").wrong("missing: webhooks are signed with it")
		}
	}
	return d.problems.err()
}

func (w *writer) subscription(ctx context.Context, s subscriptionDecl, old *settings.SubscriptionRow) error {
	s.keep(old)
	row := settings.SubscriptionRow{Code: s.code, Name: s.name, UpdatedAt: w.now}
	var stored json.RawMessage
	if old != nil {
		stored = old.Notify
	}
	told, err := w.notify(settings.EndpointOwner{Table: settings.SubscriptionsTable, Code: s.code}, s.told, stored)
	if err != nil {
		return err
	}
	if !told.reached {
		s.at.at("endpoints").wrong("missing: where it is told")
		return nil
	}
	row.Notify = told.raw
	if row.Merchants, err = json.Marshal(s.follows); err != nil {
		return err
	}
	if row.SigningSecrets, err = w.sealSecrets(settings.SubscriptionSecretPlace(s.code), s.secrets); err != nil {
		return err
	}
	if !s.enabled {
		row.DisabledAt = &w.now
	}
	if old == nil {
		row.ID, row.CreatedAt, w.changed = w.env.DB.NewID(), w.now, true
		w.say(created, "subscription "+s.code, "")
		_, err = w.tx.NewInsert().Model(&row).Exec(ctx)
		return err
	}
	if s.secrets == nil {
		row.SigningSecrets = old.SigningSecrets
	}
	enabled, err := w.enable(ctx, old.ID, s.told)
	if err != nil {
		return err
	}
	for i := range told.changes {
		told.changes[i] = strings.TrimPrefix(told.changes[i], "notify.") // its fields stand at the top
	}
	changes := w.forced(slices.Concat(w.subscriptionChanges(s, old), told.changes, enabled))
	if len(changes) == 0 {
		w.say(unchanged, "subscription "+s.code, "")
		return nil
	}
	if row.ID, w.changed = old.ID, true; !s.enabled && old.DisabledAt != nil {
		row.DisabledAt = old.DisabledAt
	}
	w.say(changed, "subscription "+s.code, strings.Join(changes, ", "))
	w.turned(s.enabled, old.DisabledAt == nil)
	_, err = w.tx.NewUpdate().Model(&row).WherePK().
		Column("name", "merchants", "signing_secrets", "notify", "updated_at", "disabled_at").Exec(ctx)
	return err
}

// keep takes what the file leaves out from what is stored. Merchants that cannot be
// read are all of them, as in a new one.
func (s *subscriptionDecl) keep(old *settings.SubscriptionRow) {
	if old == nil {
		return
	}
	if s.keepsName {
		s.name = old.Name
	}
	if s.keepsEnabled {
		s.enabled = old.DisabledAt == nil
	}
	if s.keepsFollows && json.Unmarshal(old.Merchants, &s.follows) != nil {
		s.follows = nil
	}
}

// subscriptionChanges names the fields beside how it is told that differ from what
// is stored.
func (w *writer) subscriptionChanges(s subscriptionDecl, old *settings.SubscriptionRow) (changes []string) {
	if s.name != old.Name {
		changes = append(changes, "name")
	}
	if s.enabled != (old.DisabledAt == nil) {
		changes = append(changes, "enabled")
	}
	var follows []string
	if err := json.Unmarshal(old.Merchants, &follows); err != nil || !slices.Equal(follows, s.follows) {
		changes = append(changes, "merchants")
	}
	if s.secrets != nil {
		if stored, err := settings.OpenSubscriptionSecrets(w.env.Keys, *old); !sameSecrets(stored, err, s.secrets) {
			changes = append(changes, "signing_secret")
		}
	}
	return changes
}
