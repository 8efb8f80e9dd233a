package apply

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"backstop/internal/settings"
)

// maxEntries bounds a file: it is written in one transaction, which must not delay the orders
// of a running server for long.
const maxEntries = 10_000

// declaration is a file as changes of the stored settings.
type declaration struct {
	env      settings.Env
	stored   *settings.Stored
	files    *keyFiles
	problems *problems
	seen     names
	changes  []settings.Change
	at       []object // where each change is in the file
	waits    []wait
}

// declare reads the whole file and reports all problems at once, except those that depend
// on other stored objects.
func declare(env settings.Env, f File, files *keyFiles, stored *settings.Stored) (*declaration, error) {
	d := &declaration{env: env, stored: stored, files: files, problems: newProblems(f.Name), seen: names{}}
	sections := settings.Fields(reflect.TypeFor[settings.File]())
	top := parse(string(f.Text), d.problems).object(settings.Words(reflect.TypeFor[settings.File]())...)
	if !top.given() {
		if len(d.problems.found) == 0 {
			top.wrong("the file declares nothing: it needs suppliers, merchants, skus, accounts, subscriptions, payout_accounts, roles or approval")
		}
		return nil, d.problems.err()
	}
	entries := 0
	for _, section := range sections {
		if section.Type.Kind() == reflect.Pointer {
			if v := top.at(section.Word); v.given() {
				d.entry(section.Type.Elem(), v)
			}
			continue
		}
		list := top.at(section.Word).list()
		if entries += len(list); entries > maxEntries {
			top.at(section.Word).wrong("more than %d entries in one file: split it", maxEntries)
			break
		}
		for _, v := range list {
			d.entry(section.Type.Elem(), v)
		}
	}
	for i, c := range d.changes {
		d.report(i, c.Check(env))
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return d, nil
}

// check finds problems that depend on other stored objects.
func (d *declaration) check() error {
	for _, p := range d.stored.Check(d.changes) {
		d.report(slices.IndexFunc(d.changes, func(c settings.Change) bool { return c.Object == p.Object }), []settings.Problem{p})
	}
	return d.problems.err()
}

// report adds problems of a change at their place in the file.
func (d *declaration) report(i int, found []settings.Problem) {
	for _, p := range found {
		at := d.at[i].find(d.at[i].word(p.Field))
		if !d.problems.covers(at.path) {
			at.wrong("%s", p.Fix(join(d.at[i].path, d.at[i].word(p.Twin))))
		}
	}
}

// word is the path of a field as the file writes it: signing secrets have two forms.
func (o object) word(path string) string {
	rest, signing := strings.CutPrefix(path, "signing_secret")
	switch several := o.at("signing_secrets").given(); {
	case !signing:
		return path
	case several:
		return "signing_secrets" + strings.TrimPrefix(rest, "s")
	}
	return "signing_secret"
}

func (d *declaration) entry(t reflect.Type, v value) {
	words := settings.Words(t)
	if i := slices.Index(words, "signing_secret"); i >= 0 {
		words = slices.Insert(words, i+1, "signing_secrets")
	}
	o := v.object(words...)
	code := o.at("code").peek()
	if t != reflect.TypeFor[settings.PayoutAccount]() { // its code is the merchant's
		d.seen.once(o.at("code"), strings.ToLower(t.Name()), code)
	}
	switch reflect.New(t).Interface().(type) {
	case *settings.Supplier:
		d.supplier(o, code)
	case *settings.Merchant:
		d.merchant(o, code)
	case *settings.Subscription:
		d.subscription(o, code)
	case *settings.SKU:
		is := new(settings.SKU)
		d.object(o, is, is)
		d.seen.once(o.at("sku"), "sku", is.SKU)
		add(d, o, settings.Object{Kind: "sku", ID: is.SKU}, nil, is)
	case *settings.Account:
		is := new(settings.Account)
		d.object(o, is, is)
		if is.Merchant != "" && is.Currency != "" {
			d.seen.once(o.value, "account", is.Merchant+" "+is.Currency)
		}
		add(d, o, settings.Object{Kind: "account", ID: is.Merchant + " " + is.Currency}, nil, is)
	case *settings.PayoutAccount:
		d.payoutAccount(o, o.at("merchant").peek(), code)
	case *settings.Role:
		name := o.at("name").peek()
		before, fresh := d.stored.Role(name), settings.NewRole(name)
		after := start(before, fresh)
		d.object(o, after, fresh)
		d.seen.once(o.at("name"), "role", name)
		add(d, o, settings.Object{Kind: "role", ID: name}, before, after)
	case *settings.Approval:
		before, fresh := d.stored.Approval(), settings.Nothing(d.env).Approval()
		after := start(before, fresh)
		d.object(o, after, fresh)
		add(d, o, settings.ApprovalObject, before, after)
	}
}

func add[T any](d *declaration, o object, is settings.Object, before, after *T) {
	d.changes, d.at = append(d.changes, settings.NewChange(is, before, after)), append(d.at, o)
}

// start returns a copy of the object that the file's fields are applied to: the stored one, or
// a new one.
func start[T any](stored, fresh *T) (after *T) {
	after = new(T)
	if *after = *fresh; stored != nil {
		*after = *stored
	}
	return after
}

func (d *declaration) supplier(o object, code string) {
	before, fresh := d.stored.Supplier(code), d.stored.NewSupplier(code)
	after := start(before, fresh)
	d.object(o, after, fresh)
	config := o.at("config").object()
	plain, _ := config.plain(d.files, 0).(map[string]any)
	if plain == nil {
		plain = map[string]any{}
	}
	kind, err := d.env.Kinds.Find(after.Kind)
	if err == nil && !d.problems.covers(config.path) {
		quoteNumbers(kind, code, plain)
	}
	after.SetConfig(kind, plain)
	add(d, o, settings.Object{Kind: "supplier", ID: code}, before, after)
}

func (d *declaration) merchant(o object, code string) {
	before, fresh := d.stored.Merchant(code), d.stored.NewMerchant(code)
	after := start(before, fresh)
	d.object(o, after, fresh)
	after.Name = cmp.Or(after.Name, code)
	d.seen.once(o.at("api_key"), "key", after.APIKey.Plain())
	d.seen.once(o.at("payout_key"), "key", after.PayoutKey.Plain())
	complete(o.at("notify").quiet(), &after.Notify, after.Enable)
	add(d, o, settings.Object{Kind: "merchant", ID: code}, before, after)
}

func (d *declaration) payoutAccount(o object, merchant, code string) {
	before, fresh := d.stored.PayoutAccount(merchant, code), settings.NewPayoutAccount(merchant, code)
	after := start(before, fresh)
	d.object(o, after, fresh)
	if merchant != "" && code != "" {
		d.seen.once(o.value, "payout_account", merchant+" "+code)
	}
	add(d, o, after.Object(), before, after)
}

func (d *declaration) subscription(o object, code string) {
	before, fresh := d.stored.Subscription(code), d.stored.NewSubscription(code)
	after := start(before, fresh)
	d.object(o, after, fresh)
	after.Name = cmp.Or(after.Name, code)
	complete(o, &after.Notify, after.Enable)
	add(d, o, settings.Object{Kind: "subscription", ID: code}, before, after)
}

// complete fills in the defaults that depend on other fields, and enables disabled endpoints
// that the file declares.
func complete(o object, n *settings.Notify, enable func(func(string) bool)) {
	for i := range n.Endpoints {
		n.Endpoints[i].Format = cmp.Or(n.Endpoints[i].Format, n.Format)
	}
	n.AckText = cmp.Or(n.AckText, "success")
	enable(func(address string) bool {
		return o.at("urls").given() && slices.Contains(n.URLs, address) ||
			o.at("endpoints").given() && slices.ContainsFunc(n.Endpoints, func(e settings.Endpoint) bool { return e.Name == address })
	})
}

// names finds duplicates: it maps kind and name to the first path.
type names map[[2]string]string

func (n names) once(v value, kind, name string) {
	if name == "" || !v.given() {
		return
	}
	if first, twice := n[[2]string{kind, name}]; twice {
		v.wrong("the same as in %s: give each its own", first)
		return
	}
	n[[2]string{kind, name}] = v.path
}

// books sets the Before of changes of stock and opening balances to the stored values.
func (d *declaration) books(ctx context.Context) error {
	var skus, refs []string
	for _, c := range d.changes {
		switch v := c.After.(type) {
		case *settings.SKU:
			skus = append(skus, v.SKU)
		case *settings.Account:
			refs = append(refs, v.Ref())
		}
	}
	known, err := settings.ReadStock(ctx, d.env.DB, skus)
	if err != nil {
		return err
	}
	booked, err := settings.ReadOpenings(ctx, d.env.DB, refs)
	if err != nil {
		return err
	}
	for i, c := range d.changes {
		switch v := c.After.(type) {
		case *settings.SKU:
			d.changes[i] = settings.NewChange(c.Object, known[v.SKU], v)
		case *settings.Account:
			if was, ok := booked[v.Ref()]; ok {
				d.changes[i].Before = &settings.Account{Merchant: v.Merchant, Currency: v.Currency, Balance: was}
			}
		}
	}
	return nil
}
