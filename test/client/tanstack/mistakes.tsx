import { QueryClient, useMutation, useQuery } from '@tanstack/react-query';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { createClient } from 'account-client';
import { type AppRouter, trpcClient } from 'account-client/trpc';

const client = trpcClient(createClient({ url: '' }));
const accounts = createTRPCOptionsProxy<AppRouter>({ client, queryClient: new QueryClient() });

export function Mistakes() {
  const { data, error } = useQuery(accounts.profile.get.queryOptions());
  const { mutate } = useMutation(accounts.profile.update.mutationOptions());
  const bio: string | null | undefined = data?.user.bio;
  // @ts-expect-error: there is no such field
  const email = data?.user.mail;
  // @ts-expect-error: a name is text
  mutate({ name: 1 });
  return `${bio} ${email} ${error?.data?.code === 'UNAUTHENTICATED'}`;
}
