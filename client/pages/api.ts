import { createTRPCClient, httpLink, TRPCClientError } from '@trpc/client';
import type { AppRouter } from '../../routers/index.ts';
import type { ErrorCode, ErrorDetails } from '../../server/errors.ts';
import { uploadFetch } from './upload-fetch.ts';

/** The service that these pages come from; its cookie goes along by itself. */
export const api = createTRPCClient<AppRouter>({ links: [httpLink({ url: '/trpc' })] });

/** Stores a picture and answers its address. */
export async function uploadAvatar(file: File, onProgress: (share: number) => void): Promise<string> {
  const uploads = createTRPCClient<AppRouter>({ links: [httpLink({ url: '/trpc', fetch: uploadFetch(onProgress) })] });
  const form = new FormData();
  form.set('file', file);
  form.set('type', 'avatar');
  return (await uploads.upload.image.mutate(form)).url;
}

export type Profile = Awaited<ReturnType<typeof api.profile.get.query>>['user'];

/** What the service, or the way to it, has refused. */
export interface Refusal {
  /** Undefined where no answer arrived. */
  code: ErrorCode | undefined;
  message: string;
  details: ErrorDetails;
  /** When trying again makes sense. */
  retryAt: Date | undefined;
}

/** Reads a failed call. What is no failure of a call is a fault of these pages, and thrown on. */
export function refusalIn(error: unknown): Refusal {
  if (!(error instanceof TRPCClientError)) throw error;
  const { code, details = {} } = (error as TRPCClientError<AppRouter>).data ?? {};
  const { response } = error.meta ?? {};
  const seconds = response instanceof Response ? Number(response.headers.get('Retry-After')) : 0;
  return {
    code,
    message: code ? error.message : 'The service cannot be reached. Please check your connection and try again.',
    details,
    retryAt: seconds > 0 ? new Date(Date.now() + seconds * 1000) : undefined,
  };
}
