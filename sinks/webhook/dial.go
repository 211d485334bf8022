package webhook

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// metadata lists the addresses where clouds serve credentials, besides the link-local ones.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon, IPv6
	netip.MustParseAddr("fd00:ec2::23"),    // Amazon, pods of EKS, IPv6
	netip.MustParseAddr("fd20:ce::254"),    // Google, IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// private lists the parts of IPv4 that are not public, by IANA's registry of special-purpose addresses.
var private = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// In IPv6 only global is assigned to the Internet, except for special. The rest is local, reserved or multicast.
// nat64 leads to the Internet of IPv4.
var (
	global  = netip.MustParsePrefix("2000::/3")
	special = prefixes("2001::/23", "2001:db8::/32", "3fff::/20")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// embeddings lists the ranges of IPv6 that lead to an address of IPv4, and the bytes that hold that address.
var embeddings = []struct {
	in    netip.Prefix
	bytes [][4]int
}{
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},                                                          // compatible, RFC 4291, given up
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [][4]int{{12, 13, 14, 15}}},                                                // translated, RFC 2765
	{nat64, [][4]int{{12, 13, 14, 15}}},                                                                                   // RFC 6052
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}},                                                          // 6to4, RFC 3056
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}}, // local NAT64, RFC 8215
}

// embedded returns the addresses of IPv4 that an address of IPv6 may lead to.
func embedded(ip netip.Addr) (all []netip.Addr) {
	for _, e := range embeddings {
		if !e.in.Contains(ip) {
			continue
		}
		b := ip.As16()
		for _, at := range e.bytes {
			all = append(all, netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}))
		}
	}
	return all
}

// refuse is net.Dialer.Control. It sees each address after the name look-up, so a name cannot get around it by
// changing its address.
func refuse(blockPrivate bool) func(network, address string, conn syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("parse address %q: %w", address, err)
		}
		ip := ap.Addr().WithZone("").Unmap() // ::ffff:a.b.c.d is dialled as a.b.c.d
		switch {
		case holdsCredentials(ip):
			return fmt.Errorf("refuse %v: metadata services, such as those at link-local addresses, hold cloud credentials; point the url's host elsewhere", ip)
		case blockPrivate && !isPublic(ip):
			return fmt.Errorf("refuse %v: it is not a public address, and block_private is set; point the url's host elsewhere", ip)
		default:
			return nil
		}
	}
}

func holdsCredentials(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || slices.Contains(metadata, ip) || slices.ContainsFunc(embedded(ip), holdsCredentials)
}

// isPublic reports whether an address belongs to the Internet, and does not lead to one that does not. It cannot
// recognize a NAT64 under a private prefix.
func isPublic(ip netip.Addr) bool {
	if ip.Is4() {
		return !contains(private, ip)
	}
	for _, ip := range embedded(ip) {
		if !isPublic(ip) {
			return false
		}
	}
	return global.Contains(ip) && !contains(special, ip) || nat64.Contains(ip)
}

func contains(all []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(ip) })
}
