/**
 * The driver's client alone. The driver's entry also loads its pool, which the test runner, that
 * resolves every package as an import does, cannot load; the store has a pool of its own.
 */
declare module 'pg/lib/client.js' {
  import { Client } from 'pg';

  export default Client;
}
