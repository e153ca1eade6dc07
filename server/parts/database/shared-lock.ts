import type { EntityManager } from '@mikro-orm/sql';
import { v7 as uuidv7 } from 'uuid';
import { SharedLock } from '../../../entities/index.ts';

/** `administrators`: changes that may remove one. `webhooks`, `applications`: additions, which are counted. */
type LockName = 'administrators' | 'webhooks' | 'applications';

/** The transactions that call this with one name run one after the other, from here on. */
export const lockShared = (em: EntityManager, name: LockName) => em.upsert(SharedLock, { name, holder: uuidv7() });
