package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
)

// pays returns an entry from the supplier s to a merchant.
func pays(merchant string, amount int64, ref string) ledger.Entry {
	return ledger.Entry{
		Debit: ledger.SupplierAccount("s"), Credit: ledger.MerchantAccount(merchant), Amount: amount, Currency: "CNY",
		Ref: ref,
	}
}

// post posts one journal in a transaction of its own.
func post(t *testing.T, d *db.DB, book *ledger.Ledger, entries ...ledger.Entry) error {
	return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return postIn(ctx, tx, book, entries...) })
}

func postIn(ctx context.Context, tx db.Tx, book *ledger.Ledger, entries ...ledger.Entry) error {
	w := tx.Writes()
	if err := book.Post(ctx, tx, w, entries); err != nil {
		return err
	}
	return w.Exec(ctx)
}

func posted(t *testing.T, d *db.DB, book *ledger.Ledger, entries ...ledger.Entry) {
	t.Helper()
	if err := post(t, d, book, entries...); err != nil {
		t.Fatal(err)
	}
}

func balance(t *testing.T, d *db.DB, book *ledger.Ledger, code, currency string) (got int64) {
	t.Helper()
	if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
		got, err = book.Balance(ctx, tx, code, currency)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func wantBalance(t *testing.T, d *db.DB, book *ledger.Ledger, code, currency string, want int64) {
	t.Helper()
	if got := balance(t, d, book, code, currency); got != want {
		t.Errorf("%s has %d %s, want %d", code, got, currency, want)
	}
}

func fold(t *testing.T, book *ledger.Ledger) int {
	t.Helper()
	n, err := book.Fold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func count(t *testing.T, d *db.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := d.Read.NewRaw(query, args...).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// In one transaction, the second post finds the accounts that the first created; after a
// rollback they are gone.
func TestAccountsThatWereTakenBackAreMadeAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		back := errors.New("taken back")
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return errors.Join(postIn(ctx, tx, book, pays("m", 5, "1")), postIn(ctx, tx, book, pays("m", 5, "2")), back)
		})
		if !errors.Is(err, back) {
			t.Fatal(err)
		}
		for _, ref := range []string{"3", "4", "5"} { // the account is created, found, cached
			posted(t, d, book, pays("m", 5, ref))
		}
		fold(t, book)
		wantBalance(t, d, book, "merchant:m", "CNY", 15)
	})
}

func TestARefIsBookedOnceAndWhatComesWithItIsTakenBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		posted(t, d, book, pays("m", 5, "1"))
		for name, entries := range map[string][]ledger.Entry{
			"the same fact":                {pays("m", 5, "1")},
			"another fact of the same ref": {pays("other", 7, "1")},
			"beside a new one":             {pays("m", 5, "2"), pays("m", 5, "1")},
			"twice in one journal":         {pays("m", 5, "3"), pays("m", 5, "3")},
		} {
			if err := post(t, d, book, entries...); !db.IsUnique(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for range 2 {
			wantBalance(t, d, book, "merchant:m", "CNY", 5)
			wantBalance(t, d, book, "merchant:other", "CNY", 0)
			fold(t, book)
		}
		if n := count(t, d, "SELECT count(*) FROM journals"); n != 1 {
			t.Errorf("%d journals", n)
		}
	})
}

func TestWhatIsNoTransferCannotBeWrittenDown(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		toItself := pays("m", 5, "1")
		toItself.Debit = toItself.Credit
		for name, e := range map[string]ledger.Entry{
			"nothing": pays("m", 0, "1"), "less than nothing": pays("m", -5, "1"),
			"to itself": toItself,
		} {
			if err := post(t, d, book, pays("m", 5, "2"), e); err == nil {
				t.Errorf("%s is booked", name)
			}
		}
		posted(t, d, book) // no entries: no journal
		if n := count(t, d, "SELECT (SELECT count(*) FROM journals) + (SELECT count(*) FROM transfers)"); n != 0 {
			t.Errorf("%d rows are there", n)
		}
		wantBalance(t, d, book, "merchant:m", "CNY", 0)
	})
}

// At any point of folding, the balances equal the sums of the transfers.
func TestFoldingChangesNoBalance(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		want := func() {
			t.Helper()
			for code, n := range map[string]int64{"merchant:m": 5 + 7 - 2, "merchant:n": 11, "supplier:s": -5 - 7 - 11, "fees": 2} {
				wantBalance(t, d, book, code, "CNY", n)
			}
		}
		posted(t, d, book, pays("m", 5, "1"), pays("n", 11, "2"))
		if n := fold(t, book); n != 1 {
			t.Errorf("of one journal %d were folded", n)
		}
		posted(t, d, book, pays("m", 7, "3"), ledger.Entry{Debit: "merchant:m", Credit: "fees", Amount: 2, Currency: "CNY", Ref: "4"})
		want() // a part is folded
		if n := fold(t, book); n != 1 {
			t.Errorf("of one journal more %d were folded", n)
		}
		want() // all is
		if n := fold(t, book); n != 0 {
			t.Errorf("where all is folded there were %d more", n)
		}
		want()
		if n := count(t, d, "SELECT CAST(sum(balance) AS BIGINT) FROM accounts"); n != 0 {
			t.Errorf("both sides together are %d", n)
		}
		if n := count(t, d, "SELECT balance FROM accounts WHERE code = 'merchant:n'"); n != 11 {
			t.Errorf("the account has %d", n)
		}
	})
}

// A backlog is folded in transactions of bounded size, each journal within one of them.
func TestABacklogIsFoldedInPartsAndWhole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const journals, most = 1203, 500
		book := ledger.New(d)
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			for i := range journals {
				if err := book.Post(ctx, tx, w, []ledger.Entry{pays("m", 1, strconv.Itoa(i))}); err != nil {
					return err
				}
			}
			return w.Exec(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		var parts []int
		for n := fold(t, book); n > 0; n = fold(t, book) {
			parts = append(parts, n)
			wantBalance(t, d, book, "merchant:m", "CNY", journals)
		}
		if !slices.Equal(parts, []int{most, most, journals - 2*most}) {
			t.Errorf("the parts are %v", parts)
		}
		if n := count(t, d, "SELECT balance FROM accounts WHERE code = 'merchant:m'"); n != journals {
			t.Errorf("the account has %d", n)
		}
	})
}

func TestEachCurrencyHasABalanceOfItsOwn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		in := func(currency string, e ledger.Entry) ledger.Entry {
			e.Currency = currency
			return e
		}
		posted(t, d, book, in("JPY", pays("m", 100, "1")), pays("m", 7, "2"))
		posted(t, d, book, in("USD", pays("m", 3, "3")))
		for range 2 {
			for currency, n := range map[string]int64{"CNY": 7, "JPY": 100, "USD": 3, "EUR": 0} {
				wantBalance(t, d, book, "merchant:m", currency, n)
				wantBalance(t, d, book, "supplier:s", currency, -n)
			}
			for fold(t, book) > 0 {
			}
		}
	})
}

func TestAnAccountWithoutEntriesHasNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		wantBalance(t, d, book, "merchant:m", "CNY", 0)
		if n := count(t, d, "SELECT count(*) FROM accounts"); n != 0 {
			t.Error("reading a balance created an account")
		}
	})
}

func TestLinesAreTheTransfersOfTheirRefsOldestFirst(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		posted(t, d, book, pays("m", 5, "z"), pays("n", 6, "y"))
		posted(t, d, book, pays("m", 7, "a"))
		posted(t, d, book, pays("m", 8, "not asked for"))
		lines, err := ledger.Lines(t.Context(), d.Read, []string{"a", "none", "y", "z"})
		if err != nil {
			t.Fatal(err)
		}
		var got []ledger.Entry
		for _, l := range lines {
			got = append(got, ledger.Entry{Debit: l.Debit, Credit: l.Credit, Amount: l.Amount, Currency: l.Currency, Ref: l.Ref})
		}
		if want := []ledger.Entry{pays("m", 5, "z"), pays("n", 6, "y"), pays("m", 7, "a")}; !slices.Equal(got, want) {
			t.Errorf("the lines are\n%+v, want\n%+v", got, want)
		}
		if lines[0].JournalID != lines[1].JournalID || lines[1].JournalID == lines[2].JournalID || lines[0].JournalID == 0 {
			t.Errorf("what was posted together is not one journal: %+v", lines)
		}
		if now := d.Now(); lines[0].CreatedAt > now || lines[0].CreatedAt < now-3600e6 {
			t.Errorf("it was posted at %d, now is %d", lines[0].CreatedAt, now)
		}
		if lines, err := ledger.Lines(t.Context(), d.Read, nil); err != nil || len(lines) > 0 {
			t.Errorf("of no refs: %v, %v", lines, err)
		}
	})
}
