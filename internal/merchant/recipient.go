package merchant

import "backstop/internal/recipient"

// RecipientOf returns the recipient with an id, for rows that store only the id. An id that is
// not in the Directory counts as a merchant's.
func (b *Directory) RecipientOf(id int64) recipient.Recipient {
	if m := b.ByID(id); m != nil {
		return m.Recipient()
	}
	return recipient.OfMerchant(id)
}
