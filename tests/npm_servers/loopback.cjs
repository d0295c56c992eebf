// Preloaded into node programs that name no address when they listen: they get 127.0.0.1 instead of every interface.
// The step behind `listen` is changed rather than `listen` itself, because there the port is still bound at once, and
// the conformance scenarios ask for it in the next line. The step is private to node; the node is pinned.
"use strict";
const { Server } = require("node:net");

const bind = Server.prototype._listen2;
Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  if (!address && typeof port === "number") {
    return bind.call(this, "127.0.0.1", port, 4, ...rest);
  }
  return bind.call(this, address, port, addressType, ...rest);
};
