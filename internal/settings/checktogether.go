package settings

import (
	"fmt"
	"slices"

	"backstop/internal/base/textlimit"
	"backstop/internal/fee"
	"backstop/internal/merchant"
)

// keyOwner is the field of a merchant that has a key.
type keyOwner struct{ field, merchant string }

const (
	apiKey    = "api_key"
	payoutKey = "payout_key"
)

func (o keyOwner) String() string {
	if o.field == apiKey {
		return "API key"
	}
	return "payout key"
}

// ownKey checks that a key has no other use: a leaked API key must not draw money.
func (k *checker) ownKey(owners map[string]keyOwner, is keyOwner, key Secret) {
	if !key.IsSet() {
		return
	}
	if owner, taken := owners[key.stored]; taken && owner != is {
		k.wrong(is.field, "this is the %s of merchant %s: each needs its own", owner, owner.merchant)
		return
	}
	owners[key.stored] = is
}

// Check returns what is wrong with changes that are made together: merchants and
// suppliers that are referred to must exist, an API key belongs to one merchant, and a new recipient needs a signing
// secret. Each change has already been checked on its own.
func (s *Stored) Check(changes []Change) (found []Problem) {
	exists := map[string]bool{}
	suppliers := map[string]bool{fee.Any: true}
	for code := range s.suppliers {
		suppliers[code] = true
	}
	owners := map[string]keyOwner{} // by the key's hash
	for code, r := range s.merchants {
		exists[code] = true
		if r.APIKeyHash != nil {
			owners[*r.APIKeyHash] = keyOwner{apiKey, code}
		}
		if r.PayoutKeyHash != nil {
			owners[*r.PayoutKeyHash] = keyOwner{payoutKey, code}
		}
	}
	for _, c := range changes {
		if v, ok := c.After.(*Supplier); ok {
			suppliers[v.Code] = true
		}
		if m, ok := c.After.(*Merchant); ok {
			exists[m.Code] = true
			before, ok := c.Before.(*Merchant)
			if ok && !before.APIKey.Same(m.APIKey) {
				delete(owners, before.APIKey.stored) // another merchant may take it
			}
			if ok && !before.PayoutKey.Same(m.PayoutKey) {
				delete(owners, before.PayoutKey.stored)
			}
		}
	}
	for _, c := range changes {
		k := &checker{env: s.env, object: c.Object}
		switch v := c.After.(type) {
		case *Merchant:
			if c.Before == nil && len(v.SigningSecrets) == 0 {
				k.wrong("signing_secret", "missing: a new merchant's notifications are signed with it")
			}
			for i, f := range v.Fees {
				if !suppliers[f.Supplier] {
					k.wrong(fmt.Sprintf("fees[%d].supplier", i), "there is no supplier %q: declare it first",
						textlimit.Clip(f.Supplier, maxShown))
				}
			}
			for i, f := range v.PayoutFees {
				if !suppliers[f.Supplier] {
					k.wrong(fmt.Sprintf("payout_fees[%d].supplier", i), "there is no supplier %q: declare it first",
						textlimit.Clip(f.Supplier, maxShown))
				}
			}
			if s.env.TestMode && merchant.IsTestKey(v.APIKey.Plain()) {
				k.wrong(apiKey, "keys of test mode begin with sk_test_: give the merchant another one")
			}
			k.ownKey(owners, keyOwner{apiKey, v.Code}, v.APIKey)
			k.ownKey(owners, keyOwner{payoutKey, v.Code}, v.PayoutKey)
		case *Subscription:
			if len(v.SigningSecrets) == 0 && !slices.Contains(v.unread, "signing_secret") && v.hasWebhooks() {
				k.wrong("signing_secret", "missing: webhooks are signed with it")
			}
			for i, code := range v.Merchants {
				if !exists[code] {
					k.wrong(fmt.Sprintf("merchants[%d]", i), "there is no merchant %q: declare it first", textlimit.Clip(code, maxShown))
				}
			}
		case *PayoutAccount:
			if !exists[v.Merchant] {
				k.wrong("merchant", "there is no merchant %q: declare it under merchants", v.Merchant)
			}
		case *Role:
			k.roleHeld(v, s.holders)
		case *Account:
			if !exists[v.Merchant] {
				k.wrong("merchant", "there is no merchant %q: declare it under merchants", v.Merchant)
			}
		}
		found = append(found, k.found...)
	}
	return found
}
