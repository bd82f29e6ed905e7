/* Which socket addresses are not on the public internet: pure, from one table. */
#ifndef PAWL_HTTP_ADDRESS_H
#define PAWL_HTTP_ADDRESS_H

#include <sys/socket.h>

/* NULL for a public address, else what it is instead: "loopback". An IPv6 address that carries an
 * IPv4 one is judged by that; a family that is neither is never public. */
const char *address_special(const struct sockaddr *a);

#endif
