// @module-tag campaign-store
import { flowApiTests } from '../support/flow-api.js';
import { flowEdgeTests } from '../support/flow-edges.js';
import { flowEndTests } from '../support/flow-ends.js';
import { freshStore } from './fresh-store.js';

flowApiTests('PostgreSQL', freshStore);
flowEdgeTests('PostgreSQL', freshStore);
flowEndTests('PostgreSQL', freshStore);
