import type { MailState, Role, UploadPurpose, UploadState } from '../../../entities/index.ts';

/** Kysely's view of the entities' tables: rows as the drivers give them, booleans as 0 or 1, times in milliseconds. */
export interface Tables {
  users: {
    id: string;
    email: string;
    name: string;
    search_name: string | null;
    bio: string | null;
    location: string | null;
    website: string | null;
    avatar: string | null;
    provider: string;
    role: Role;
    email_verified: number;
    password_hash: string | null;
    password_proven: number;
    password_browser: string | null;
    session_epoch: number;
    created_at: number;
  };
  identities: {
    id: string;
    user_id: string;
    issuer: string;
    subject: string;
    provider: string;
    proven: number;
    browser: string | null;
    created_at: number;
  };
  one_time_tokens: {
    id: string;
    user_id: string;
    purpose: string;
    token_hash: string;
    expires_at: number;
    used: number;
    reserved_until: number | null;
  };
  outbox: {
    id: string;
    kind: string;
    email: string;
    inbox: string;
    user_id: string | null;
    token_id: string | null;
    detail: string | null;
    state: MailState;
    attempts: number;
    due_at: number;
    expires_at: number;
    created_at: number;
  };
  uploads: {
    object_key: string;
    user_id: string;
    purpose: UploadPurpose;
    content_type: string;
    size: number;
    state: UploadState;
    expires_at: number;
    due_at: number | null;
    created_at: number;
  };
  upload_usage: {
    user_id: string;
    used: number;
    files: number;
  };
}
