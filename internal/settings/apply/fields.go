package apply

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"

	"backstop/internal/base/textlimit"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
)

// object applies the file's fields to an object. A field that the file leaves out keeps its
// value; null sets the value of a fresh one.
func (d *declaration) object(o object, to, fresh any) {
	d.fields(o, reflect.ValueOf(to).Elem(), reflect.ValueOf(fresh).Elem(), to)
}

func (d *declaration) fields(o object, to, fresh reflect.Value, whole any) {
	for _, f := range settings.Fields(to.Type()) {
		v, is := o.at(f.Word), f.Of(to)
		_, secret := is.Interface().(settings.Secret)
		switch {
		case f.Word == "signing_secret":
			keys := d.signing(o)
			if keys == nil {
				continue
			}
			is.Set(reflect.ValueOf(keys))
		case f.Need != "" && !v.given():
			v.wrong("%s", f.Need)
		case o.leftOut(f.Word), secret && !v.given(): // a secret is never removed
			continue
		case !v.given():
			is.Set(f.Of(fresh))
		default:
			d.field(f, v, is, f.Of(fresh))
		}
		if u, ok := whole.(interface{ SetNew(string) }); ok {
			u.SetNew(f.Word)
		}
	}
}

// field reads one field that the file has.
func (d *declaration) field(f settings.Field, v value, to, fresh reflect.Value) {
	switch is := to.Addr().Interface().(type) {
	case *settings.Secret:
		*is = v.stored(d.files, f.Form == "key")
	case *map[string]settings.Secret:
		*is = d.secrets(v)
	case *map[string]any: // a supplier's config, read by its kind
	case *settings.Schedule:
		*is = d.schedule(v)
	case *settings.Followed:
		*is = followed(v)
	case *[]string:
		*is = []string{}
		for _, e := range v.list() {
			*is = append(*is, e.text())
		}
	case *[]netip.Prefix:
		*is = prefixes(v)
	case *settings.Breaker:
		*is = settings.Breaker{}
		d.fields(v.object(settings.Words(f.Type)...), to, fresh, nil)
	case *settings.Notify:
		d.fields(v.object(settings.Words(f.Type)...), to, fresh, nil)
	case *[]settings.Endpoint:
		*is = d.endpoints(v, *is)
	case *settings.Fee:
		*is = settings.NewFee()
		d.object(v.object(settings.Words(f.Type)...), is, new(settings.NewFee()))
	case *[]settings.MerchantFee:
		*is = entries(d, v, settings.NewMerchantFee())
	case *[]settings.PayoutFee:
		*is = entries(d, v, settings.NewPayoutFee())
	case *[]settings.Limit:
		*is = entries(d, v, settings.NewLimit())
	case *[]settings.TypedAbove:
		*is = entries(d, v, settings.TypedAbove{})
	case *[]settings.SecondAbove:
		*is = entries(d, v, settings.NewSecondAbove())
	default:
		d.scalar(f, v, to)
	}
}

func (d *declaration) scalar(f settings.Field, v value, to reflect.Value) {
	switch {
	case f.Form == "pem":
		to.SetString(v.secret(d.files))
	case to.Kind() == reflect.String:
		to.SetString(v.text())
	case v.node.Kind != yaml.ScalarNode, to.Kind() == reflect.Bool && v.node.ShortTag() != "!!bool":
		v.wrong("use %s", f.Accepts())
	default:
		if problem := f.Set(to, v.node.Value); problem != "" {
			v.wrong("%s", problem)
		}
	}
}

// signing reads signing_secret or signing_secrets, newest first.
func (d *declaration) signing(o object) (keys []settings.Secret) {
	one, several := o.at("signing_secret"), o.at("signing_secrets")
	entries := several.list()
	switch {
	case one.given() && several.given():
		several.wrong("give signing_secret or signing_secrets, not both")
		return nil
	case one.given():
		entries = []value{one}
	case several.given() && len(entries) == 0:
		several.wrong("give one secret, or two during rotation: [new, old]")
	}
	for _, e := range entries {
		keys = append(keys, e.stored(d.files, false))
	}
	return keys
}

// secrets reads a set of named secrets. Values may be "file:PATH".
func (d *declaration) secrets(v value) map[string]settings.Secret {
	o := v.object()
	all := map[string]settings.Secret{}
	for _, name := range o.names {
		all[name] = o.fields[name].stored(d.files, false)
	}
	return all
}

// entries reads a list of objects; each starts as a copy of fresh.
func entries[T any](d *declaration, v value, fresh T) []T {
	all := []T{}
	for _, entry := range v.list() {
		e := fresh
		d.object(entry.object(settings.Words(reflect.TypeFor[T]())...), &e, &fresh)
		all = append(all, e)
	}
	return all
}

// endpoints reads the list of endpoints. Credentials and a key that the file leaves out are
// those of the stored endpoint with the same name and channel. A missing format is filled in
// later by complete.
func (d *declaration) endpoints(v value, stored []settings.Endpoint) []settings.Endpoint {
	all := []settings.Endpoint{}
	for _, entry := range v.list() {
		o := entry.object(settings.Words(reflect.TypeFor[settings.Endpoint]())...)
		e := settings.Endpoint{Channel: merchant.WebhookChannel, Weight: 1}
		fresh := e
		if channel := o.at("channel").peek(); channel != "" {
			e.Channel = settings.Channel(channel)
		}
		for _, s := range stored {
			if s.Name != o.at("name").peek() || s.Channel != e.Channel {
				continue
			}
			if e.Credentials = s.Credentials; o.at("client_cert").given() {
				e.ClientKey = s.ClientKey
			}
		}
		fresh.Credentials = e.Credentials
		d.object(o, &e, &fresh)
		all = append(all, e)
	}
	return all
}

// schedule reads a preset's name or a list of waits.
func (d *declaration) schedule(v value) settings.Schedule {
	var s notify.Schedule
	if err := v.node.Decode(&s); err != nil {
		problem := "use a preset (day, quick) or a list of waits such as [1s, 3s, 5s]"
		if errors.Is(err, notify.ErrSchedule) {
			problem = strings.TrimPrefix(err.Error(), notify.ErrSchedule.Error()+": ")
		}
		v.wrong("%s", problem)
		s = notify.Day()
	}
	return schedule(s)
}

// followed reads a list of merchants' codes; nil for "all".
func followed(v value) settings.Followed {
	if len(v.node.Content) == 0 && v.node.Value == "all" {
		return nil
	}
	codes := settings.Followed{}
	for _, e := range v.list() {
		codes = append(codes, e.text())
	}
	return codes
}

// prefixes reads CIDR ranges; a single address is a range of one.
func prefixes(v value) []netip.Prefix {
	ranges := []netip.Prefix{}
	for _, e := range v.list() {
		text := e.text()
		p, err := netip.ParsePrefix(text)
		if a, aErr := netip.ParseAddr(text); aErr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			e.wrong("%q: use a range such as 101.226.103.0/25, or one address", textlimit.Clip(text, maxShown))
			continue
		}
		ranges = append(ranges, p)
	}
	return ranges
}

// schedule converts a schedule of package notify.
func schedule(s notify.Schedule) settings.Schedule {
	name := s.String()
	if name != "day" && name != "quick" {
		name = "list"
	}
	return settings.Schedule{Name: name, Waits: s}
}

// ParseSchedule reads a preset's name or a list of waits.
func ParseSchedule(text string) (settings.Schedule, error) {
	s, err := notify.ParseSchedule(text)
	if err != nil {
		return settings.Schedule{}, errors.New(strings.TrimPrefix(err.Error(), notify.ErrSchedule.Error()+": "))
	}
	return schedule(s), nil
}
