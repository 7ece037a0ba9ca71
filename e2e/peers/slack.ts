// What errand and the fake workspace say to each other, as Slack's own SDK types it. TestSlackSchemas turns these types into the schemas of the fake.
import type * as api from '@slack/web-api'
import type * as slack from '@slack/types'
import type * as request from '@slack/web-api/dist/types/request/manifest.js' // the package does not export it

export interface Arguments {
  'apps.connections.open': api.AppsConnectionsOpenArguments
  'apps.manifest.create': api.AppsManifestCreateArguments
  'assistant.threads.setStatus': api.AssistantThreadsSetStatusArguments
  'auth.test': api.AuthTestArguments
  'bots.info': api.BotsInfoArguments
  'users.info': api.UsersInfoArguments
  'conversations.info': api.ConversationsInfoArguments
  'conversations.join': api.ConversationsJoinArguments
  'conversations.list': api.ConversationsListArguments
  'conversations.history': api.ConversationsHistoryArguments
  'conversations.replies': api.ConversationsRepliesArguments
  'chat.postMessage': api.ChatPostMessageArguments
  'chat.postEphemeral': api.ChatPostEphemeralArguments
  'chat.update': api.ChatUpdateArguments
  'chat.delete': api.ChatDeleteArguments
  'chat.getPermalink': api.ChatGetPermalinkArguments
  'reactions.add': api.ReactionsAddArguments
  'reactions.remove': api.ReactionsRemoveArguments
  'views.open': api.ViewsOpenArguments
  'views.publish': api.ViewsPublishArguments
  'files.info': api.FilesInfoArguments
  'files.getUploadURLExternal': api.FilesGetUploadURLExternalArguments
  'files.completeUploadExternal': api.FilesCompleteUploadExternalArguments
}

export interface Answers {
  'apps.connections.open': api.AppsConnectionsOpenResponse
  'apps.manifest.create': api.AppsManifestCreateResponse
  'assistant.threads.setStatus': api.AssistantThreadsSetStatusResponse
  'auth.test': api.AuthTestResponse
  'bots.info': api.BotsInfoResponse
  'users.info': api.UsersInfoResponse
  'conversations.info': api.ConversationsInfoResponse
  'conversations.join': api.ConversationsJoinResponse
  'conversations.list': api.ConversationsListResponse
  'conversations.history': api.ConversationsHistoryResponse
  'conversations.replies': api.ConversationsRepliesResponse
  'chat.postMessage': api.ChatPostMessageResponse
  'chat.postEphemeral': api.ChatPostEphemeralResponse
  'chat.update': api.ChatUpdateResponse
  'chat.delete': api.ChatDeleteResponse
  'chat.getPermalink': api.ChatGetPermalinkResponse
  'reactions.add': api.ReactionsAddResponse
  'reactions.remove': api.ReactionsRemoveResponse
  'views.open': api.ViewsOpenResponse
  'views.publish': api.ViewsPublishResponse
  'files.info': api.FilesInfoResponse
  'files.getUploadURLExternal': api.FilesGetUploadURLExternalResponse
  'files.completeUploadExternal': api.FilesCompleteUploadExternalResponse
}

export interface Events {
  app_mention: slack.AppMentionEvent
  message: slack.MessageEvent
  reaction_added: slack.ReactionAddedEvent
  reaction_removed: slack.ReactionRemovedEvent
  app_home_opened: slack.AppHomeOpenedEvent
}

export interface Others {
  block: slack.KnownBlock
  manifest: request.Manifest
}
