// The client and the errors of undici without its fetch, caches and proxies, which take 60 ms and
// 600 kB of every start.
declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici';
  export default Client;
}

declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici';
  export default errors;
}
