import type { Client as PgClient } from 'pg';
import DriverClient from 'pg/lib/client.js';

/** The driver's client, and not its pool. */
export const Client: typeof PgClient = DriverClient;
export type Client = PgClient;
