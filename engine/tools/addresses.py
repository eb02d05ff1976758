"""Which internet addresses a tool may reach: those that everybody can reach.

The lists follow the IANA special-purpose address registries (RFC 6890 and its updates). They stand here instead of
`ipaddress.is_global` because that answer changed between patch releases of Python. Knows nothing of HTTP.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NOT_PUBLIC_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, also the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, with broadcast
    )
)

_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments, among them Teredo, which wraps IPv4
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which wraps IPv4
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Say whether an IP address (`93.184.216.34`, `2606:2800::1`) belongs to the public internet.

    An IPv6 address that stands for an IPv4 one (IPv4-mapped, NAT64) is judged by that one; other wrappings are
    not public.

    Raises:
        ValueError: The text is no IP address.
    """
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        wrapped = parsed.ipv4_mapped
        if wrapped is None and parsed in _NAT64:
            wrapped = IPv4Address(parsed.packed[-4:])
        if wrapped is None:
            return parsed in _GLOBAL_UNICAST_V6 and not any(parsed in block for block in _NOT_PUBLIC_V6)
        parsed = wrapped
    return not any(parsed in block for block in _NOT_PUBLIC_V4)
