"""The environment variables of ambient credentials, and obstore's names for them."""

from __future__ import annotations

from podferry.storage.credentials.sources import AwsSource

AMBIENT_VARIABLES = {
    AwsSource.WEB_IDENTITY: {
        "AWS_WEB_IDENTITY_TOKEN_FILE": "web_identity_token_file",
        "AWS_ROLE_ARN": "role_arn",
        "AWS_ROLE_SESSION_NAME": "role_session_name",
        "AWS_ENDPOINT_URL_STS": "aws_endpoint_url_sts",
    },
    AwsSource.CONTAINER: {
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "container_credentials_relative_uri",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "container_credentials_full_uri",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "container_authorization_token_file",
    },
    AwsSource.METADATA: {"AWS_METADATA_ENDPOINT": "metadata_endpoint"},
}
