import pg from 'pg';

export const { Client } = pg;
export type Client = pg.Client;
