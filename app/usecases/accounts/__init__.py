"""What a person may hold and spend: grants, caps, allowances, requests and histories."""
