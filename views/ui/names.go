package ui

import (
	"cmp"

	"backstop/internal/base/text"
)

// Names are what merchants and suppliers are called, by code; "" = nothing else.
type Names interface {
	MerchantName(code string) string
	SupplierName(code string) string
}

// Merchant is what a merchant is called: by its name, or by its code if it has none or is gone.
func (p *Page) Merchant(code string) string {
	if p.Names == nil {
		return code
	}
	return cmp.Or(p.Names.MerchantName(code), code)
}

// Supplier is what a supplier is called, as Merchant.
func (p *Page) Supplier(code string) string {
	if p.Names == nil {
		return code
	}
	return cmp.Or(p.Names.SupplierName(code), code)
}

// named shows a name; its value is the code. The tooltip has both, since lists may cut the name off.
func named(code, name string) Cell {
	title := code
	if name != code {
		title = name + " · " + code
	}
	return Cell{Text: code, Show: name, Title: title}
}

// MerchantCol is a column of merchants: names on the page, codes in files.
func MerchantCol[T any](of func(T) string) Column[T] {
	return Col("merchant", text.Merchant, TextKind, func(p *Page, row T) Cell { return named(of(row), p.Merchant(of(row))) }).As("party")
}

// SupplierCol is a column of suppliers, as MerchantCol.
func SupplierCol[T any](of func(T) string) Column[T] {
	return Col("supplier", text.Supplier, TextKind, func(p *Page, row T) Cell { return named(of(row), p.Supplier(of(row))) }).As("party")
}

// MerchantFact is a merchant by its name.
func MerchantFact(p *Page, code string) Fact {
	return Fact{Label: text.Merchant, Cell: named(code, p.Merchant(code))}
}

// SupplierFact is a supplier by its name.
func SupplierFact(p *Page, code string) Fact {
	return Fact{Label: text.Supplier, Cell: named(code, p.Supplier(code))}
}
