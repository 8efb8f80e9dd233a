package settings

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/seal"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// PayoutAccountsTable and PayoutAccountKind are the table and the kind of payout accounts.
const (
	PayoutAccountsTable = "payout_accounts"
	PayoutAccountKind   = "payout_account"
)

// PayoutAccountRow is a payout account as stored. What it pays to never changes: a change is a new
// row, so that a payout that was approved cannot go elsewhere. The newest row of a code counts.
type PayoutAccountRow struct {
	bun.BaseModel `bun:"table:payout_accounts,alias:pa"`

	ID         int64  `bun:"id,pk"`
	MerchantID int64  `bun:"merchant_id"`
	Code       string `bun:"code"`
	Kind       string `bun:"kind"`
	Holder     string `bun:"holder"`
	Number     string `bun:"number"` // sealed
	// NumberHash finds an account by its number: a MAC, since numbers can be guessed.
	NumberHash string `bun:"number_hash"`
	Last4      string `bun:"last4"` // of the number; of an e-mail address its masked form
	Bank       string `bun:"bank"`
	CreatedAt  int64  `bun:"created_at"`
	UpdatedAt  int64  `bun:"updated_at"`
	DisabledAt *int64 `bun:"disabled_at"`
}

func numberPlace(id int64) seal.Place {
	return seal.Place{Table: PayoutAccountsTable, Row: strconv.FormatInt(id, 10), Field: "number"}
}

// Masked returns the form in which an account's number is shown: its last four characters, or the
// first letter and the domain of an e-mail address.
func Masked(number string) string {
	if number == "" {
		return ""
	}
	return maskedTail(last4(number))
}

func maskedTail(tail string) string {
	if strings.Contains(tail, "•") { // an e-mail address
		return tail
	}
	return strings.TrimSpace("•••• " + tail)
}

// last4 returns what may be shown of a number: its last four characters, of a short number fewer,
// so that most stays hidden. Of an e-mail address that would be a part of the domain, which tells
// nothing: its first letter and the domain are shown.
func last4(number string) string {
	if name, domain, ok := strings.Cut(number, "@"); ok && name != "" && strings.Contains(domain, ".") && !strings.Contains(domain, "@") {
		first, _ := utf8.DecodeRuneInString(name)
		return string(first) + "•••@" + domain
	}
	all := []rune(number)
	return string(all[len(all)-min(4, len(all)/2):])
}

// numberHashes returns the hashes that an account's number may be stored under, the current first.
func numberHashes(keys *seal.Keyring, merchantID int64, kind, number string) []string {
	return keys.MAC("payout account").Sums(fmt.Appendf(nil, "%d %q %q", merchantID, kind, number))
}

// readPayoutAccounts reads the newest row of each account.
func (s *Stored) readPayoutAccounts(ctx context.Context, q bun.IDB) error {
	var rows []PayoutAccountRow
	if err := q.NewSelect().Model(&rows).OrderExpr("pa.id").Scan(ctx); err != nil {
		return fmt.Errorf("read payout accounts: %w", err)
	}
	codes := map[int64]string{}
	for code, m := range s.merchants {
		codes[m.ID] = code
	}
	for i, r := range rows {
		s.payouts[codes[r.MerchantID]+" "+r.Code] = &rows[i]
	}
	return nil
}

// Object identifies the account.
func (a *PayoutAccount) Object() Object {
	return Object{Kind: PayoutAccountKind, ID: strings.TrimSpace(a.Merchant + " " + a.Code)}
}

// PayoutAccount returns a stored payout account, or nil.
func (s *Stored) PayoutAccount(merchant, code string) *PayoutAccount {
	r := s.payouts[merchant+" "+code]
	if r == nil {
		return nil
	}
	return &PayoutAccount{
		Merchant: merchant, Code: code, Kind: r.Kind, Holder: r.Holder, Bank: r.Bank, Enabled: r.DisabledAt == nil,
		Number: s.open(numberPlace(r.ID), r.Number),
	}
}

// PayoutAccounts returns all payout accounts, ordered by merchant and code.
func (s *Stored) PayoutAccounts() (all []*PayoutAccount) {
	for _, key := range sortedKeys(s.payouts) {
		merchant, code, _ := strings.Cut(key, " ")
		all = append(all, s.PayoutAccount(merchant, code))
	}
	return all
}

// NewPayoutAccount returns a new entry with its defaults.
func NewPayoutAccount(merchant, code string) *PayoutAccount {
	return &PayoutAccount{Merchant: merchant, Code: code, Enabled: true}
}

// minNumber is the shortest number of an account, in characters.
const minNumber = 4

// payoutAccount checks what the tags do not describe.
func (k *checker) payoutAccount(v *PayoutAccount) {
	switch number := v.Number.plain; {
	case number == "": // missing, or it cannot be opened on this node
	case len(number) < minNumber:
		k.wrong("number", "use at least %d characters", minNumber)
	case strings.ContainsFunc(number, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }):
		k.wrong("number", "use letters, digits and signs only, without spaces")
	}
	if v.Kind == supplier.PayeeBankCard && v.Bank == "" {
		k.wrong("bank", "missing: name the bank of a %s", v.Kind)
	}
}

// payoutAccount writes a payout account. Disabling and enabling changes its row; anything else is
// a new one.
func (w *commit) payoutAccount(ctx context.Context, v *PayoutAccount) error {
	merchantID := w.made[v.Merchant]
	if m := w.merchants[v.Merchant]; m != nil {
		merchantID = m.ID
	}
	var disabled *int64
	if !v.Enabled {
		disabled = &w.now
	}
	if old := w.payouts[v.Merchant+" "+v.Code]; old != nil {
		is := w.PayoutAccount(v.Merchant, v.Code)
		same := is.Kind == v.Kind && is.Holder == v.Holder && is.Bank == v.Bank && is.Number.Same(v.Number)
		to := &w.now
		if same && (v.Enabled || old.DisabledAt == nil) {
			to = disabled
		} else if old.DisabledAt != nil {
			to = old.DisabledAt
		}
		if _, err := w.tx.NewRaw("UPDATE payout_accounts SET disabled_at = ?, updated_at = ? WHERE id = ?", to, w.now,
			old.ID).Exec(ctx); err != nil || same {
			return err
		}
	}
	if v.Number.plain == "" {
		return errors.New("its stored number cannot be decrypted here: give it in the file")
	}
	row := &PayoutAccountRow{
		ID: w.env.DB.NewID(), MerchantID: merchantID, Code: v.Code, Kind: v.Kind, Holder: v.Holder, Bank: v.Bank,
		Last4:      last4(v.Number.plain),
		NumberHash: numberHashes(w.env.Keys, merchantID, v.Kind, v.Number.plain)[0], CreatedAt: w.now, UpdatedAt: w.now,
		DisabledAt: disabled,
	}
	row.Number = w.env.Keys.Seal(numberPlace(row.ID), []byte(v.Number.plain))
	_, err := w.tx.NewInsert().Model(row).Exec(ctx)
	return err
}

// LoadPayoutAccount finds an account for a decision about its change; its version is the time of
// its last change. Errors: act.ErrNotFound.
func LoadPayoutAccount(ctx context.Context, q bun.IDB, object string) (act.Subject, error) {
	words := strings.Split(object, " ") // kind, merchant, code
	if len(words) != 3 {
		return act.Subject{}, act.ErrNotFound
	}
	row := new(PayoutAccountRow)
	err := q.NewSelect().Model(row).Where("pa.merchant_id = (SELECT id FROM merchants WHERE code = ?)", words[1]).Where("pa.code = ?",
		words[2]).
		OrderExpr("pa.id DESC").Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return act.Subject{}, act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, fmt.Errorf("read %s: %w", object, err)
	}
	return act.Subject{ID: object, Version: row.UpdatedAt, MerchantID: row.MerchantID}, nil
}

// ResealPayoutAccount returns a locked account before and after resealing under the current key.
func ResealPayoutAccount(ctx context.Context, tx db.Tx, d *db.DB, keys *seal.Keyring, id int64) (was, is PayoutAccountRow, err error) {
	if err := d.ForUpdate(tx.NewSelect().Model(&was).Where("pa.id = ?", id)).Scan(ctx); err != nil {
		return was, is, err
	}
	if is = was; !keys.NeedsReseal(was.Number) {
		return was, is, nil
	}
	plain, err := keys.Open(numberPlace(id), was.Number)
	if err != nil {
		return was, is, err
	}
	is.Number, is.NumberHash = keys.Seal(numberPlace(id), plain), numberHashes(keys, was.MerchantID, was.Kind, string(plain))[0]
	return was, is, nil
}

// storedRanges and readRanges convert ranges to and from their stored form; "" = none.
func storedRanges(all []netip.Prefix) string {
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // ranges always have a form
	return string(text)
}

func readRanges(text string) (all []netip.Prefix, err error) {
	if text == "" {
		return []netip.Prefix{}, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("payout_ips: %w", err)
	}
	return slices.Concat([]netip.Prefix{}, all), nil
}

// ErrNoPayoutAccount means that a merchant has no such payout account.
var ErrNoPayoutAccount = errors.New("no such payout account")

// Masked returns the account's number as it is shown.
func (r *PayoutAccountRow) Masked() string { return maskedTail(r.Last4) }

// PayoutTarget names a merchant's payout account, by its code or, if Like is not nil, by its
// content.
type PayoutTarget struct {
	MerchantID int64
	Code       string
	Like       *supplier.Payee
}

// PayoutAccountsOf finds the account of each target; nil = there is none.
func (s *Store) PayoutAccountsOf(ctx context.Context, q db.Session, all []PayoutTarget) ([]*PayoutAccountRow, error) {
	type key struct {
		OfMerchant int64
		OfCode     string
	}
	var keys []key
	for _, t := range all {
		if k := (key{t.MerchantID, t.Code}); t.Like == nil && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	byCode := map[key]*PayoutAccountRow{}
	if len(keys) > 0 {
		var rows []*PayoutAccountRow
		err := q.Prepared(ctx, &rows, "WITH _v ? SELECT "+s.db.Columns((*PayoutAccountRow)(nil))+
			" FROM _v JOIN payout_accounts ON merchant_id = _v.of_merchant AND code = _v.of_code ORDER BY id", bulk.Each(&keys))
		if err != nil {
			return nil, fmt.Errorf("read payout accounts: %w", err)
		}
		for _, r := range rows {
			byCode[key{r.MerchantID, r.Code}] = r // the newest of its code
		}
	}
	found := make([]*PayoutAccountRow, len(all))
	for i, t := range all {
		if found[i] = byCode[key{t.MerchantID, t.Code}]; t.Like == nil {
			continue
		}
		row, err := s.payoutAccountLike(ctx, q, t.MerchantID, *t.Like)
		if err != nil && !errors.Is(err, ErrNoPayoutAccount) {
			return nil, err
		}
		found[i] = row
	}
	return found, nil
}

// payoutAccountLike finds a merchant's account by its content, an enabled one first. Errors:
// ErrNoPayoutAccount.
func (s *Store) payoutAccountLike(ctx context.Context, q bun.IDB, merchantID int64, to supplier.Payee) (*PayoutAccountRow, error) {
	return onePayoutAccount(ctx, q.NewSelect().Where("pa.merchant_id = ?", merchantID).
		Where("pa.number_hash IN (?)", bun.List(numberHashes(s.keys, merchantID, to.Kind, to.Number))).
		Where("pa.kind = ? AND pa.holder = ? AND pa.bank = ?", to.Kind, to.Holder, to.Bank).
		OrderExpr("CASE WHEN pa.disabled_at IS NULL THEN 0 ELSE 1 END, pa.id"))
}

// PayoutAccountByID finds an account by its id. Errors: ErrNoPayoutAccount.
func (s *Store) PayoutAccountByID(ctx context.Context, q bun.IDB, id int64) (*PayoutAccountRow, error) {
	return onePayoutAccount(ctx, q.NewSelect().Where("pa.id = ?", id))
}

// Payee returns an account with its number in plain text, for a call. Errors:
// ErrNoPayoutAccount, and those of seal.
func (s *Store) Payee(ctx context.Context, q bun.IDB, id int64) (supplier.Payee, error) {
	r, err := s.PayoutAccountByID(ctx, q, id)
	if err != nil {
		return supplier.Payee{}, err
	}
	number, err := s.keys.Open(numberPlace(id), r.Number)
	if err != nil {
		return supplier.Payee{}, fmt.Errorf("open the number of payout account %d: %w", id, err)
	}
	return supplier.Payee{Kind: r.Kind, Holder: r.Holder, Number: string(number), Bank: r.Bank}, nil
}

func onePayoutAccount(ctx context.Context, read *bun.SelectQuery) (*PayoutAccountRow, error) {
	r := new(PayoutAccountRow)
	err := read.Model(r).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoPayoutAccount
	}
	if err != nil {
		return nil, fmt.Errorf("read a payout account: %w", err)
	}
	return r, nil
}
